"""Runs whose ranks lie in folders of several nodes."""

import json
import os
import random
import shutil


def sharded_case(folder, seed=0):
    """A torch run and one of the acceleration library on two ranks, with shards and partial sums."""
    import pairing_data

    draw = random.Random(seed)
    options = {**pairing_data._drawn(draw), "names": None, "family": "llama", "sizes": {}, "ranks": 2, "layers": 3}
    options["gathered_head"] = False
    return pairing_data.DataCase(folder, lengths=[5], **options)


def spread(case, root):
    """Each rank of the library on a node of its own, all with one device and process number; golden on a third node.
    Returns the two maps."""
    ranks = sorted((case.mine / "tensors").iterdir(), key=lambda path: int(path.name.split("_")[0]))
    pids = [path.name.split("_")[1] for path in ranks]
    folders = {}
    for number, rank in enumerate(ranks):
        node = root / f"n{number}" / "ait_dump"
        (node / "tensors").mkdir(parents=True)
        shutil.move(rank, node / "tensors/0_77")
        for kind in ("model", "layer"):
            if (case.mine / kind / pids[number]).is_dir():
                shutil.copytree(case.mine / kind / pids[number], node / kind / "77")
        process = {"pid": 77, "name": "77", "host": f"n{number}", "rank": number, "local_rank": 0, "world_size": 2}
        manifest = {"tool": "ait llm dump", "complete": True, "processes": [process]}
        (node / "manifest.json").write_text(json.dumps(manifest, indent=1))
        folders[f"n{number}"] = [str(node)]
    (root / "n2").mkdir()
    shutil.move(case.golden, root / "n2/ait_dump")
    return write_map(root / "my.json", folders), write_map(root / "golden.json", {"n2": [str(root / "n2/ait_dump")]})


def write_map(path, folders):
    path.write_text(json.dumps(folders))
    return path


def spread_folders(golden, mine, root, nodes):
    """Files of two folders, one after the other, on nodes: pairs have their sides on different ones."""
    maps = []
    for side, shift in ((golden, 0), (mine, 1)):
        names = sorted(side.iterdir())
        folders = {node: [str(root / node / side.name)] for node in nodes}
        for (folder,) in folders.values():
            os.makedirs(folder)
        for i, name in enumerate(names):
            # Most pairs are on one node.
            node = nodes[(i + (shift if i % 10 == 0 else 0)) % len(nodes)]
            os.link(name, root / node / side.name / name.name)
        maps.append(write_map(root / f"{side.name}.json", folders))
    return maps
