"""The peers: every library that the benchmark knows, by name, and others by `module:class`."""

from __future__ import annotations

import importlib
import sys

from outpace.bench.ann.peers.base import Peer, told
from outpace.bench.ann.peers.exact import ExactPeer
from outpace.bench.ann.peers.faiss_ import FaissHnswPeer, FaissPqPeer, FaissRabitqPeer
from outpace.bench.ann.peers.glass_ import CrinnPeer, GlassPeer
from outpace.bench.ann.peers.hnswlib_ import HnswlibPeer
from outpace.bench.ann.peers.ngt_ import NgtPeer, NgtQgPeer
from outpace.bench.ann.peers.outpace_ import DEFAULTS, OURS, OutpaceDefaultsPeer, OutpacePeer
from outpace.bench.ann.peers.pynndescent_ import PynndescentPeer
from outpace.bench.ann.peers.scann_ import ScannPeer
from outpace.bench.ann.peers.svs_ import SvsPeer
from outpace.bench.ann.peers.symphonyqg_ import SymphonyqgPeer
from outpace.bench.ann.peers.usearch_ import UsearchPeer
from outpace.bench.ann.peers.voyager_ import VoyagerPeer
from outpace.bench.ann.peers.vsag_ import VsagPeer
from outpace.errors import OutpaceError

_KNOWN: tuple[Peer, ...] = (
    OutpacePeer(),
    OutpaceDefaultsPeer(),
    HnswlibPeer(),
    FaissHnswPeer(),
    FaissPqPeer(),
    FaissRabitqPeer(),
    UsearchPeer(),
    ScannPeer(),
    SvsPeer(),
    VsagPeer(),
    NgtPeer(),
    NgtQgPeer(),
    VoyagerPeer(),
    PynndescentPeer(),
    GlassPeer(),
    CrinnPeer(),
    SymphonyqgPeer(),
)
# Not among those that run when none is named: it answers every query right and says nothing new.
_YARDSTICK = ExactPeer()
# Not among the peers that ours is compared with.
OWN = (OURS, DEFAULTS, _YARDSTICK.name)


def names() -> tuple[str, ...]:
    """Those that run when none is named."""
    return tuple(peer.name for peer in _KNOWN)


def find(name: str) -> Peer:
    """The peer of this name, or an instance of the class that `module:class` names."""
    peer = next((each for each in (*_KNOWN, _YARDSTICK) if each.name == name), None)
    if peer is not None:
        return peer
    where, _, what = name.partition(":")
    if not what:
        known = ", ".join((*names(), _YARDSTICK.name))
        raise OutpaceError(f"no peer is named {name}: known are {known}; give your own as module:class")
    try:
        made: Peer = getattr(importlib.import_module(where), what)()
    except (ImportError, AttributeError) as fault:
        raise OutpaceError(f"the peer {name} cannot be loaded ({fault}): its module must be importable") from None
    return made


def put_on_path(peer: Peer) -> None:
    """Let a peer that was built from source be imported from the folder that its environment variable names."""
    folder = told(peer.name, "PATH")
    if folder:
        sys.path.insert(0, folder)
