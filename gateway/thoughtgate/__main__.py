"""`python -m thoughtgate`: the same as the command `thoughtgate`.

Never holds anything but the call.
"""

from thoughtgate.cli import main

if __name__ == "__main__":
    main()
