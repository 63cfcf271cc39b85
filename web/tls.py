"""A TLS context for `--tls`: the configured certificate, or a self-signed one made on first use.

A phone's browser gives a microphone only to a secure page. The certificate is kept, so that a
browser's exception for it stays valid. Runs the `openssl` program once; blocks, so call it before
the loop serves.
"""

from __future__ import annotations

import os
import shutil
import ssl
import subprocess
from collections.abc import Sequence
from ipaddress import ip_address
from pathlib import Path

from .config import TlsConfig
from .config_reader import ConfigError

DAYS = 365
EXPIRING_S = 7 * 86_400


def server_context(config: TlsConfig, folder: Path, names: Sequence[str]) -> ssl.SSLContext | None:
    """None when TLS is off. Raises ConfigError for files that cannot be used.

    `names` are the host names and addresses a self-signed certificate is made for, in `folder`.
    """
    if config.mode == "off":
        return None
    cert, key = Path(config.cert), Path(config.key)
    if config.mode == "self-signed":
        cert, key = self_signed(folder, names)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(cert, key)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError("server.tls", str(cert), f"it cannot be loaded: {error}") from None
    return context


def self_signed(folder: Path, names: Sequence[str]) -> tuple[Path, Path]:
    """(certificate, key) in `folder`, made anew when missing or near its end."""
    program = shutil.which("openssl")
    if program is None:
        raise ConfigError(
            "server.tls", "self-signed", "install openssl, or give server.tls.cert and key"
        )
    cert, key = folder / "cert.pem", folder / "key.pem"
    if cert.is_file() and key.is_file() and _still_good(program, cert):
        return cert, key
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    alternative = ",".join(f"{'IP' if _is_address(name) else 'DNS'}:{name}" for name in names)
    command = [
        *(program, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
        *("-nodes", "-days", str(DAYS), "-subj", "/CN=voxglove"),
        *("-addext", f"subjectAltName={alternative}"),
        *("-keyout", str(key), "-out", str(cert)),
    ]
    made = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    if made.returncode:
        raise ConfigError("server.tls", "self-signed", f"openssl failed: {made.stderr[-200:]}")
    os.chmod(key, 0o600)
    return cert, key


def _still_good(program: str, cert: Path) -> bool:
    check = [program, "x509", "-in", str(cert), "-noout", "-checkend", str(EXPIRING_S)]
    return subprocess.run(check, capture_output=True, timeout=30, check=False).returncode == 0


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
