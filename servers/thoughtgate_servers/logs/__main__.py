"""`python -m thoughtgate_servers.logs`: the command without an installed script.

Never does anything when imported.
"""

from thoughtgate_servers.logs import main

if __name__ == "__main__":
    main(prog_name="thoughtgate-logs")
