"""The command `paceline`: the program that the wheel brings, which takes this process over. It stands beside the
package, so that it starts without NumPy."""

import os
import sys


def main() -> None:
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "paceline", "bin", "paceline")
    os.execv(program, [program, *sys.argv[1:]])
