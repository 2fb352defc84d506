"""A gRPC server of a file, under the keys that our own configuration has for one.

Never decides which server is one: its URL says so.
"""

from collections.abc import Mapping

from thoughtgate.config.grpc_servers import anchored, lowered, misfits, with_files
from thoughtgate.config.imports.fields import Fields
from thoughtgate.config.imports.folders import Folders
from thoughtgate.core.servers import GrpcTransport, Streaming, Tls

GRPC_KEYS = frozenset({
    "reflect", "descriptor_set", "streaming", "bidi", "tls_ca", "tls_cert", "tls_key", "tls_name",
})  # fmt: skip


def read_grpc(
    fields: Fields, folders: Folders, key: str, headers: Mapping[str, str]
) -> GrpcTransport:
    """Return the server; what does not fit together is a problem at its key. `key` has the URL."""
    tls = [fields.text(f"tls_{part}") for part in ("ca", "cert", "key", "name")]
    transport = GrpcTransport(
        url=fields.text(key),
        headers=headers,
        reflect=fields.texts("reflect"),
        descriptor_set=fields.text("descriptor_set"),
        streaming=_streaming(fields),
        bidi=bool(fields.flag("bidi")),
        tls=Tls(ca=tls[0], cert=tls[1], key=tls[2], name=tls[3]),
    )
    if not (fields.problems or fields.fill.wanted):
        for misfit in misfits(transport):
            steps = (key,) if misfit.key == "url" else misfit.key.split(".", 1)
            fields.problem(misfit.text, *steps)
    placed = with_files(transport, lambda file: anchored(folders.expanded(file), folders.base))
    return lowered(placed)


def _streaming(fields: Fields) -> Streaming:
    said = fields.text("streaming")
    if said and said not in list(Streaming):
        fields.problem("must be array or last", "streaming")
        return Streaming.ARRAY
    return Streaming(said or "array")
