"""What --cluster may name, and what leaves this machine in clear."""

from __future__ import annotations

import pytest

from skill_effectiveness.studies.cluster_address import ClusterAddress, is_loopback, read_cluster
from skill_effectiveness.studies.errors import StudyCode, StudyError


def refused(text: str, *, plain: bool = False) -> StudyCode:
    with pytest.raises(StudyError) as caught:
        read_cluster(text, plain=plain)
    assert caught.value.where == "--cluster"
    return caught.value.code


@pytest.mark.parametrize(("text", "workers"), [("local:1", 1), ("local:4", 4), ("local:256", 256)])
def test_workers_here(text: str, workers: int) -> None:
    assert read_cluster(text, plain=False) == ClusterAddress(workers, None)


@pytest.mark.parametrize(
    "text",
    [
        "tls://cluster.example:8786",
        "tls://10.0.0.1:8786",
        "tls://[2001:db8::1]:8786",
        "tcp://localhost:8786",
        "tcp://LocalHost:1",
        "tcp://127.0.0.1:8786",
        "tcp://127.255.0.9:8786",
        "tcp://[::1]:65535",
        "tcp://[0:0:0:0:0:0:0:1]:8786",
        "tcp://[::ffff:127.0.0.1]:8786",
    ],
)
def test_schedulers(text: str) -> None:
    """S33: encrypted anywhere; plain on this machine."""
    found = read_cluster(text, plain=False)
    assert found == ClusterAddress(0, text)
    assert found.encrypted is text.startswith("tls")


@pytest.mark.parametrize(
    "text",
    [
        "tcp://cluster.example:8786",
        "tcp://10.0.0.1:8786",
        "tcp://192.168.1.4:8786",
        "tcp://0.0.0.0:8786",
        "tcp://128.0.0.1:8786",
        "tcp://127.1:8786",
        "tcp://127.0.0.1.example:8786",
        "tcp://localhost.:8786",
        "tcp://localhost.localdomain:8786",
        "tcp://[2001:db8::1]:8786",
        "tcp://[::]:8786",
        "tcp://[::2]:8786",
        "tcp://[::ffff:10.0.0.1]:8786",
        "tcp://[fe80::1]:8786",
    ],
)
def test_plain_connections_that_would_leave(text: str) -> None:
    """S33: IPv4, IPv6 and names; only localhost and literal loopback addresses are this machine."""
    assert refused(text) is StudyCode.CLUSTER_PLAIN
    assert read_cluster(text, plain=True) == ClusterAddress(0, text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "local",
        "local:",
        "local:0",
        "local:-1",
        "local:01",
        "local:257",
        "local:2 ",
        "LOCAL:2",
        "tcp://127.0.0.1",
        "tcp://127.0.0.1:0",
        "tcp://127.0.0.1:65536",
        "tcp://127.0.0.1:8786/x",
        "tcp://user@127.0.0.1:8786",
        "tcp://::1:8786",
        "tcp://[127.0.0.1]:8786",
        "tcp://[::1%lo]:8786",
        "tcp:// :8786",
        "TCP://127.0.0.1:8786",
        "ws://127.0.0.1:8786",
        "inproc://x",
        "127.0.0.1:8786",
        "tls://a\n:8786",
        "tcp://127.0.0.1:8786\n",
        "tcp://\uff11\uff12\uff17.0.0.1:8786",
        "tcp://127.0.0.1:\uff18\uff17\uff18\uff16",
        "local:\uff12",
    ],
)
def test_texts_that_are_no_address(text: str) -> None:
    """S33: nothing is guessed, allowed or not."""
    assert refused(text) is StudyCode.CLUSTER_ADDRESS
    assert refused(text, plain=True) is StudyCode.CLUSTER_ADDRESS


def test_loopback_by_its_text() -> None:
    """S33: a name that leads to this machine today is a name."""
    assert not is_loopback("ip6-localhost")
    assert is_loopback("::1")
