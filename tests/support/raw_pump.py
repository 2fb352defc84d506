"""A child process that carries bytes between its pipes and a socket, and understands none of them.

Usage: `python raw_pump.py PORT`. So a test can be a tool server on stdio without leaving its loop.
"""

import os
import socket
import sys
import threading


def main(port: int) -> None:
    connection = socket.create_connection(("127.0.0.1", port))
    threading.Thread(target=_outwards, args=(connection,), daemon=True).start()
    while data := os.read(0, 65536):
        connection.sendall(data)
    connection.close()


def _outwards(connection: socket.socket) -> None:
    while data := connection.recv(65536):
        while data:
            data = data[os.write(1, data) :]
    os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]))
