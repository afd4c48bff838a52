"""It tries: a process of this machine, started by somebody else, searches behind a socket in a folder."""

import os
import socket

from real_work import plan_of, steps

HERE = os.path.dirname(os.path.abspath(__file__))


def plan(problem, context):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(os.path.join(HERE, "socket"))
        connection.sendall(f"{steps(problem)}\n".encode())
        return plan_of(problem, int(connection.recv(64)))
