"""What a WebRTC line reads in a peer's session description (RFC 8866) before aiortc does. Pure."""

from __future__ import annotations

from ...media.errors import MediaValueError

MAX_SDP_BYTES = 65_536
MAX_SECTIONS = 16
MAX_CANDIDATES = 128


def usable_offer(sdp: str) -> str:
    """`sdp` without the candidates that nobody outside the browser's network can resolve.

    Raises MediaValueError naming what is wrong with it.
    """
    if len(sdp.encode(errors="replace")) > MAX_SDP_BYTES:
        raise MediaValueError("sdp", "a long text", f"send at most {MAX_SDP_BYTES} bytes")
    lines = sdp.splitlines()
    kinds = [line[2:].split(" ", 1)[0] for line in lines if line.startswith("m=")]
    if "audio" not in kinds:
        raise MediaValueError("sdp", "an offer without audio", "add an audio transceiver or track")
    if len(kinds) > MAX_SECTIONS:
        raise MediaValueError("sdp", f"{len(kinds)} sections", f"offer at most {MAX_SECTIONS}")
    if not _fingerprinted(lines):
        raise MediaValueError("sdp", "no fingerprint", "offer DTLS with a fingerprint")
    kept = [line for line in lines if not (line.startswith("a=candidate:") and is_mdns(line))]
    if sum(line.startswith("a=candidate:") for line in kept) > MAX_CANDIDATES:
        raise MediaValueError("sdp", "many candidates", f"send at most {MAX_CANDIDATES}")
    return "\r\n".join(kept) + "\r\n"


def _fingerprinted(lines: list[str]) -> bool:
    """Whether each section names the peer's certificate (RFC 8122 5), itself or by the session."""
    found = [False]
    for line in lines:
        if line.startswith("m="):
            found.append(found[0])
        elif line.startswith("a=fingerprint:"):
            found[-1] = True
    return all(found[1:])


def has_data(sdp: str) -> bool:
    """Whether the peer offers a data channel."""
    return any(line.startswith("m=application ") for line in sdp.splitlines())


def ice_name(sdp: str) -> str:
    """The peer's ICE user name (RFC 8839 5.4), which an ICE restart changes; "" without one."""
    for line in sdp.splitlines():
        if line.startswith("a=ice-ufrag:"):
            return line.removeprefix("a=ice-ufrag:").strip()
    return ""


def is_mdns(candidate: str) -> bool:
    """Whether the candidate's address is a `.local` name (RFC 8828): waiting for it costs 1 s."""
    fields = candidate.split()
    return len(fields) > 4 and fields[4].lower().rstrip(".").endswith(".local")
