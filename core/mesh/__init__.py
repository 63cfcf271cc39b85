"""Agents that talk to each other (spec core 14)."""

from .memory import MemoryMeshAdapter, MeshNetwork
from .mount import DeliveryMode, Mesh, mount_mesh
from .port import AgentIdentity, IncomingMessage, MeshAdapter, MeshError, MeshMessage

__all__ = [
    "AgentIdentity",
    "DeliveryMode",
    "IncomingMessage",
    "MemoryMeshAdapter",
    "Mesh",
    "MeshAdapter",
    "MeshError",
    "MeshMessage",
    "MeshNetwork",
    "mount_mesh",
]
