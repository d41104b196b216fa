"""Pages around goals. Each view parses, calls one service, renders; objects come only through `for_user`."""
