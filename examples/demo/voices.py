"""What the demo's machines say: one function per kind of log, each a record at a time.

Never looks at how a reader classifies: the type of each record is written down as it is made.
"""

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

USERS = ("alice", "bob", "li.wei", "王芳", "chen", "müller")
PATHS = ("/", "/api/orders", "/api/cart", "/搜索?q=茶", "/static/app.js", "/api/pay", "/healthz")
AGENTS = ("Mozilla/5.0 (X11; Linux x86_64)", "curl/8.5.0", "MicroMessenger/8.0", 'odd "agent"')
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One record: its text (several lines for a traceback) and what it counts as.

    `type` is empty for a record that is no error.
    """

    text: str
    type: str = ""
    severity: str = ""


Voice = Callable[[random.Random, datetime], Said]


def syslog_old(rng: random.Random, when: datetime) -> Said:
    """RFC 3164 as found in /var/log: no year, no priority."""
    head = f"{MONTHS[when.month - 1]} {when.day:2d} {when:%H:%M:%S} web-1"
    pid, user = rng.randint(200, 9999), rng.choice(USERS)
    quiet = (
        f"systemd[1]: Started Session {pid} of user {user}.",
        f"CRON[{pid}]: (root) CMD (run-parts /etc/cron.hourly)",
        f"sshd[{pid}]: Accepted publickey for {user} from 10.0.0.{pid % 250} port 52122 ssh2",
        f"dockerd[{pid}]: 容器 shop-{pid % 7} 已启动",
    )
    loud = (
        ("sshd", f"sshd[{pid}]: error: kex_exchange_identification: Connection closed"),
        ("sshd", f"sshd[{pid}]: Failed password for {user} from 10.0.0.{pid % 250} port 40022"),
        ("kernel", f"kernel: [{pid}.123456] EXT4-fs error (device sda1): ext4_lookup:1785"),
        ("dockerd", f"dockerd[{pid}]: 容器 shop-{pid % 7} 启动失败: 端口被占用"),
        ("backupd", f"backupd[{pid}]: 备份失败：磁盘空间不足"),
    )
    if rng.random() < 0.8:
        return Said(text=f"{head} {rng.choice(quiet)}")
    program, message = rng.choice(loud)
    return Said(text=f"{head} {message}", type=f"syslog error {program}", severity="error")


def syslog_new(rng: random.Random, when: datetime) -> Said:
    """RFC 5424, with priority and structured data."""
    severity = rng.choices((6, 5, 4, 3, 2, 0), weights=(50, 20, 12, 12, 4, 2))[0]
    name = ("emerg", "alert", "crit", "error", "warning", "notice", "info")[severity]
    program = rng.choice(("postgres", "firewalld", "存储"))
    data = rng.choice(("-", '[meta sequenceId="7"]', '[ex@32473 note="a \\"quoted\\] end"]'))
    message = rng.choice(("连接已关闭", "no errors found", "checkpoint complete", "disk sdb: 坏块"))
    text = (
        f"<{16 * 8 + severity}>1 {when:%Y-%m-%dT%H:%M:%S}.{rng.randint(0, 999):03d}Z "
        f"db-1 {program} {rng.randint(100, 9999)} ID{severity} {data} {message}"
    )
    if severity > 3:
        return Said(text=text)
    full = ("emergency", "alert", "critical", "error")[severity]
    return Said(text=text, type=f"syslog {name} {program}", severity=full)


def nginx_access(rng: random.Random, when: datetime) -> Said:
    """The combined format; only 5xx are errors."""
    weights = (70, 6, 4, 8, 3, 4, 3, 1)
    status = rng.choices((200, 204, 301, 404, 499, 500, 502, 504), weights=weights)[0]
    stamp = f"{when.day:02d}/{MONTHS[when.month - 1]}/{when:%Y:%H:%M:%S} +0000"
    agent = rng.choice(AGENTS).replace('"', '\\"')
    text = (
        f"192.0.2.{rng.randint(1, 254)} - - [{stamp}] "
        f'"{rng.choice(("GET", "POST"))} {rng.choice(PATHS)} HTTP/1.1" {status} '
        f'{rng.randint(0, 90_000)} "-" "{agent}"'
    )
    if status < 500:
        return Said(text=text)
    return Said(text=text, type=f"nginx {status}", severity="error")


def nginx_error(rng: random.Random, when: datetime) -> Said:
    """Nginx's own error log; warn and notice are no errors."""
    level = rng.choices(("notice", "warn", "error", "crit", "emerg"), weights=(30, 25, 35, 8, 2))[0]
    message = rng.choice((
        "connect() failed (111: Connection refused) while connecting to upstream",
        "upstream timed out (110: Connection timed out) while reading response header",
        'open() "/srv/www/图片/标志.png" failed (2: No such file or directory)',
        "signal process started",
    ))
    text = (
        f"{when:%Y/%m/%d %H:%M:%S} [{level}] {rng.randint(100, 999)}#0: "
        f"*{rng.randint(1, 99_999)} {message}, client: 192.0.2.{rng.randint(1, 254)}"
    )
    severity = {"error": "error", "crit": "critical", "emerg": "emergency"}.get(level, "")
    return Said(text=text, type=f"nginx {level}" if severity else "", severity=severity)


def json_lines(rng: random.Random, when: datetime) -> Said:
    """Structured logs of a service, two libraries' spellings."""
    level = rng.choices(("info", "warning", "error", "critical"), weights=(60, 15, 20, 5))[0]
    logger = rng.choice(("billing", "search", "推荐"))
    message = rng.choice((
        "支付网关超时",
        "cache miss",
        "retry later, last error was 503",
        "库存不足",
    ))
    stamp = f"{when:%Y-%m-%dT%H:%M:%S}+00:00"
    failure = rng.choice(("TimeoutError", "billing.CardDeclined", ""))
    record: dict[str, object] = {"timestamp": stamp, "level": level, "logger": logger}
    if rng.random() < 0.3:
        number = {"info": 30, "warning": 40, "error": 50, "critical": 60}[level]
        record = {"time": int(when.timestamp() * 1000), "level": number, "name": logger}
    record["msg"] = message
    if level in {"error", "critical"} and failure:
        record["error"] = {"type": failure, "message": message}
    text = json.dumps(record, ensure_ascii=rng.random() < 0.3)
    if level in {"info", "warning"}:
        return Said(text=text)
    shown = failure or f"json {'crit' if level == 'critical' else 'error'} {logger}"
    return Said(text=text, type=shown, severity=level)


def python_app(rng: random.Random, when: datetime) -> Said:
    """Python's logging: plain records, and errors with tracebacks over several lines."""
    stamp = f"{when:%Y-%m-%d %H:%M:%S},{rng.randint(0, 999):03d}"
    logger = rng.choice(("shop.cart", "shop.pay", "shop.库存"))
    draw = rng.random()
    if draw < 0.70:
        level = rng.choice(("INFO", "INFO", "DEBUG", "WARNING"))
        message = rng.choice((
            "订单已创建",
            "ERROR count is 0",
            "user said: ValueError: no",
            "retrying after failure",
        ))
        return Said(text=f"{stamp} {level} {logger}: {message}")
    if draw < 0.80:
        level = rng.choice(("ERROR", "ERROR", "CRITICAL"))
        text = f"{stamp} {level} {logger}: {rng.choice(('下单失败', 'stock is negative'))}"
        severity = "error" if level == "ERROR" else "critical"
        return Said(text=text, type=f"{level} {logger}", severity=severity)
    kind, trace = rng.choice(TRACES)
    text = f"{stamp} ERROR {logger}: 处理请求失败 request failed\n{trace}"
    return Said(text=text, type=kind, severity="error")


def _trace(last: str, line: int = 42) -> str:
    return (
        "Traceback (most recent call last):\n"
        f'  File "/srv/shop/views.py", line {line}, in checkout\n'
        "    order = place(cart, 用户)\n"
        "            ^^^^^^^^^^^^^^^^^\n"
        f"{last}"
    )


TRACES = (
    ("ValueError", _trace("ValueError: 金额不能为负数: -3")),
    ("KeyError", _trace("KeyError: 'sku'")),
    ("shop.errors.PaymentDeclined", _trace("shop.errors.PaymentDeclined: card 尾号 4242 被拒绝")),
    (
        "sqlalchemy.exc.OperationalError",
        _trace("sqlalchemy.exc.OperationalError: connection lost\n[SQL: SELECT 1]\nhelp: e3q8"),
    ),
    ("TimeoutError", _trace("TimeoutError")),
    (
        "RuntimeError",
        _trace("KeyError: 'user'")
        + "\n\nDuring handling of the above exception, another exception occurred:\n\n"
        + _trace("RuntimeError: 无法恢复会话", 77),
    ),
    (
        "LookupError",
        _trace("ConnectionResetError: [Errno 104] Connection reset by peer")
        + "\n\nThe above exception was the direct cause of the following exception:\n\n"
        + _trace("LookupError: no such tenant", 12),
    ),
)
