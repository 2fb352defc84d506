"""`python -m thoughtgate_servers.notify`: the command without an installed script.

Never does anything when imported.
"""

from thoughtgate_servers.notify import main

if __name__ == "__main__":
    main(prog_name="thoughtgate-notify")
