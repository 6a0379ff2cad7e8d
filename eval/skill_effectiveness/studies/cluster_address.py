"""What `--cluster` names: workers of this machine, or a scheduler (studies.md section 3).

| form | means |
|---|---|
| `local:N` | N worker processes that are started here and end with the run |
| `tls://host:port` | a scheduler, encrypted, by the certificates that distributed is configured with |
| `tcp://host:port` | a scheduler of this machine; of another one only when that is asked for in words |

A plain connection shows prompts to whoever listens and lets whoever reaches it run code. `localhost` and
literal loopback addresses are this machine; any other name is not, wherever it leads today.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from typing import Final

from skill_effectiveness.studies.errors import StudyCode, StudyError
from skill_effectiveness.studies.executors import MOST_JOBS

_LOCAL: Final = re.compile(r"local:([1-9][0-9]{0,2})")
_REMOTE: Final = re.compile(
    r"(tls|tcp)://(?:\[([0-9A-Fa-f:.]{2,45})\]|([A-Za-z0-9._-]{1,253})):([1-9][0-9]{0,4})"
)
_MOST_PORTS: Final = 65_535
_OPTION: Final = "--cluster"


@dataclass(frozen=True, slots=True)
class ClusterAddress:
    """Where a run's orders go.

    Attributes:
        workers: how many are started here; 0 where a scheduler is named.
        scheduler: its address; None where workers are started here.
    """

    workers: int
    scheduler: str | None

    @property
    def encrypted(self) -> bool:
        """Whether the connection is."""
        return self.scheduler is not None and self.scheduler.startswith("tls://")


def read_cluster(text: str, *, plain: bool) -> ClusterAddress:
    """The cluster that a command line names.

    Args:
        text: as typed.
        plain: whether an unencrypted connection may leave this machine.

    Raises:
        StudyError: `cluster_address`, `cluster_plain`.
    """
    if (local := _LOCAL.fullmatch(text)) is not None and int(local[1]) <= MOST_JOBS:
        return ClusterAddress(int(local[1]), None)
    remote = _REMOTE.fullmatch(text)
    if remote is None or int(remote[4]) > _MOST_PORTS or not _is_host(remote[2]):
        sentence = f"a cluster is local:N (1 to {MOST_JOBS}), tls://HOST:PORT or tcp://HOST:PORT."
        raise StudyError(StudyCode.CLUSTER_ADDRESS, _OPTION, sentence)
    if remote[1] == "tcp" and not plain and not is_loopback(remote[2] or remote[3]):
        sentence = (
            "this plain connection would leave this machine: prompts in clear, and code run by whoever "
            "reaches it. Use tls://, or add --allow-plain-tcp where the network is yours alone."
        )
        raise StudyError(StudyCode.CLUSTER_PLAIN, _OPTION, sentence)
    return ClusterAddress(0, text)


def _is_host(bracketed: str | None) -> bool:
    if bracketed is None:
        return True
    try:
        IPv6Address(bracketed)
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """Whether a host is certainly this machine: `localhost` or a literal loopback address."""
    if host.lower() == "localhost":
        return True
    try:
        address = ip_address(host)
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return (mapped or address).is_loopback
