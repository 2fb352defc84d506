"""`python -m thoughtgate_servers.data`: the command without an installed script.

Never does anything when imported.
"""

from thoughtgate_servers.data import main

if __name__ == "__main__":
    main(prog_name="thoughtgate-data")
