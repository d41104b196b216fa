"""What a server on the eager reactor sends arrives whole, whatever the kernel takes at once."""

import hashlib
import socket
import subprocess
import sys
import time

SERVER = """
import uvloop
from config import reactor
reactor.install(uvloop.new_event_loop())
from twisted.internet import protocol, reactor

class Big(protocol.Protocol):
    def connectionMade(self):
        for number in range(2000):
            self.transport.write(b"%06d " % number * 500)
        self.transport.loseConnection()

factory = protocol.Factory.forProtocol(Big)
print(reactor.listenTCP(0, factory, interface="127.0.0.1").getHost().port, flush=True)
reactor.run()
"""
SENT = hashlib.sha256(b"".join(b"%06d " % number * 500 for number in range(2000))).hexdigest()


def test_a_large_answer_to_a_slow_reader_arrives_whole_and_ends() -> None:
    with subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            with socket.create_connection(("127.0.0.1", int(server.stdout.readline())), timeout=20) as client:
                time.sleep(0.3)  # the socket's buffer is full
                come = hashlib.sha256()
                while piece := client.recv(65536):
                    come.update(piece)
        finally:
            server.kill()
    assert come.hexdigest() == SENT
