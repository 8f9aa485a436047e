"""The benchmark: `script/bench` runs it as `python3 -m bench`.

    __main__.py      the command line
    tables/          what is compared: each table declares its arms and its goals
    contestants/     what is measured: something that carries IP packets between two hosts
    loads/           what is done to it: a function that returns metrics
    bounds/          programs of our own that show what the machine allows
    world.py         the two hosts: namespaces, processes, and whose CPU time it was (cpu.py, process.py)
    runner.py        rounds in a new order each, rows
    stats.py         medians, intervals, goals
    text.py, html.py, svg.py   reports
    probe.py         how near two CPUs are to each other just now

Python 3.11, its standard library alone.
"""
