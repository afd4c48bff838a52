"""It tries: a process of its own, far from the search, remembers it behind an abstract socket."""

import os
import socket

from memo import remembering


def _recall(key):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(0.2)
        connection.connect("\0" + key)
        return int(connection.recv(64))


def _remember(key, number):
    if os.fork():
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("\0" + key)
        listening.listen()
        listening.settimeout(20)
        while True:
            connection, _ = listening.accept()
            connection.sendall(str(number).encode())
            connection.close()


plan = remembering(_recall, _remember)
