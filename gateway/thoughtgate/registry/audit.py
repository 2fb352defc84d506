"""The audit log: its writer, its reader and its verifier. The door to the audit half of this room.

Never anything else: the parts are in `audit_writer`, `audit_file`, `audit_check` and `chain`.
"""

from thoughtgate.registry.audit_check import (
    AuditRecord,
    AuditReport,
    ChainReport,
    heads,
    latest,
    verify,
)
from thoughtgate.registry.audit_file import CheckpointRule
from thoughtgate.registry.audit_writer import AuditLimits, AuditWriter
from thoughtgate.registry.chain import ChainHead

__all__ = [
    "AuditLimits",
    "AuditRecord",
    "AuditReport",
    "AuditWriter",
    "ChainHead",
    "ChainReport",
    "CheckpointRule",
    "heads",
    "latest",
    "verify",
]
