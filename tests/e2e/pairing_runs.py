"""Pairs of runs that differ in what they were fed, in rounds and in ranks: who corresponds to whom is known, and which
numbers mean something. KINDS makes one case of each kind from a random number generator."""

import pathlib
import shutil

import torch
from atb_run import Library
from pairing import Case, read_rows
from torch_run import Names, TorchRecorder, make_model

VOCABULARY = 97


class RunLibrary(Library):
    """Its fault, where it has one, is in some tokens only, and its warm-ups may be as long as the prompt."""

    def __init__(self, *arguments, fault_tokens=None, **options):
        super().__init__(*arguments, **options)
        self.fault_tokens = fault_tokens
        self.token_of = {}  # (round, operation) -> token

    def save(self, path, outputs, truth):
        super().save(path, outputs, truth)
        self.token_of[str(self.round), "/".join(path)] = self.token

    def faulty(self, layer, op, tensor):
        if self.fault_tokens is not None and self.token not in self.fault_tokens:
            return tensor
        return super().faulty(layer, op, tensor)

    def warm(self, prompt, words):
        """What nobody asked for: a prompt and words of its own."""
        self.warming, self.token, self.caches, position = True, -1, None, 0
        for number, given in enumerate([prompt, *words]):
            self.step("decode" if number else "prefill", given, [given.shape[1]] * given.shape[0], position)
            position += given.shape[1]
        self.warming = False


def generate(model, recorder, prompt, steps):
    """The words that follow a prompt, greedily; a recorder hears of it by itself."""
    words, cache, given = [], None, prompt
    with torch.no_grad():
        for _ in range(steps + 1):
            out = model(input_ids=given, past_key_values=cache, use_cache=True)
            cache, given = out.past_key_values, out.logits[:, -1].argmax(-1, keepdim=True)
            words.append(given)
    recorder.write_tree()
    return words


def feed(model, recorder, prompt, words):
    """A prompt and words that are given."""
    cache, given = None, prompt
    with torch.no_grad():
        for word in words:
            cache = model(input_ids=given, past_key_values=cache, use_cache=True).past_key_values
            given = word
    recorder.write_tree()


def draw_prompt(random, length=None, batch=1, other_than=None):
    length = length or random.randint(5, 9)
    while True:
        prompt = torch.tensor([[random.randrange(1, VOCABULARY) for _ in range(length)] for _ in range(batch)])
        if other_than is None or prompt.shape != other_than.shape or not torch.equal(prompt, other_than):
            return prompt


def another(random, word):
    """As many other words."""
    return torch.tensor([[(int(each) + random.randrange(1, VOCABULARY)) % VOCABULARY] for each in word.flatten()])


def draw_options(random):
    """What does not matter for the question at hand."""
    return dict(
        ranks=random.choice([1, 1, 2]),
        fused_qkv=random.random() < 0.3,
        split_programs=random.random() < 0.7,
        dtype=random.choice(["float32", "float16", "bfloat16"]),
    )


def keep(root, ranks=None, rounds=None):
    """Leaves of a dump these ranks and rounds alone."""
    for rank in (root / "tensors").iterdir():
        if ranks is not None and int(rank.name.split("_")[0]) not in ranks:
            shutil.rmtree(rank)
            continue
        for each in rank.iterdir():
            if rounds is not None and int(each.name) not in rounds:
                shutil.rmtree(each)


class RunCase(Case):
    """A torch run and a library's run. Tokens in `parted` were fed something else: their numbers mean nothing."""

    least = 0.97

    def __init__(self, random, folder, family=None, **library):
        self.folder, self.random, self.parted = pathlib.Path(folder), random, set()
        self.recorded = None  # tokens of my side, where these are not all
        torch.set_num_threads(1)
        self.model = make_model(family or random.choice(["llama", "qwen2", "mistral"]), random.randint(2, 3))
        self.recorder = TorchRecorder(self.model, self.golden, names=Names(None))
        self.library = RunLibrary(self.model, self.mine, **library)
        self.truth = self.library.truth

    def judge(self, rows):
        wanted, found, wrong = super().judge(rows)
        for row in rows:
            token = row["token_id"]
            if row["golden_data_path"] and row["my_data_path"]:
                place = pathlib.Path(row["my_data_path"].split(";")[0]).relative_to(self.mine / "tensors").parts
                if self.library.token_of[place[1], row["my_operation"]] != int(token):
                    wrong.append((token, row["my_data_path"], "is of another token"))
            if token.isdigit() and int(token) in self.parted and row["cosine_similarity"]:
                wrong.append((token, row["my_operation"], "is measured, though the runs were fed other tokens"))
        is_wanted = lambda token: token not in self.parted and (self.recorded is None or token in self.recorded)
        return {each for each in wanted if is_wanted(each[0])}, found, wrong


def free_running(random, folder, inputs=True):
    """Greedy words that part somewhere, as they do where logits are nearly the same."""
    case = RunCase(random, folder, inputs=inputs, **draw_options(random))
    prompt, steps = draw_prompt(random), 4
    words = generate(case.model, case.recorder, prompt, steps)
    case.first = random.randint(2, steps)  # the token that is fed something else
    mine = [*words[: case.first - 1], *(another(random, word) for word in words[case.first - 1 :])]
    case.library.run(prompt, mine)
    case.parted = set(range(case.first, steps + 1))
    return case


def free_running_without_ids(random, folder):
    return free_running(random, folder, inputs=False)


def other_prompt(random, folder):
    case = RunCase(random, folder, inputs=True, **draw_options(random))
    prompt = draw_prompt(random)
    mine = draw_prompt(random, length=random.choice([prompt.shape[1], None]), other_than=prompt)
    words = generate(case.model, case.recorder, prompt, 2)
    case.library.run(mine, words)
    case.first, case.parted = 0, {0, 1, 2}
    return case


def several_prompts(random, folder):
    """One after the other; those of one side part in the first, and the second is the same again."""
    case = RunCase(random, folder, inputs=True, **draw_options(random))
    parts = random.random() < 0.5
    first, second = draw_prompt(random), draw_prompt(random)
    offset = 0
    for prompt in (first, second):
        words = generate(case.model, case.recorder, prompt, 2)
        mine = [words[0], another(random, words[1]), *words[2:]] if parts and prompt is first else words
        case.library.run(prompt, mine, token_offset=offset)
        if mine is not words:
            case.first, case.parted = offset + 2, {offset + 2}
        offset += len(words)
    return case


def warm_up(random, folder):
    """Prompts and words before the real ones, as long as these."""
    case = RunCase(random, folder, inputs=random.random() < 0.5, **draw_options(random))
    prompt = draw_prompt(random)
    words = generate(case.model, case.recorder, prompt, 2)
    for _ in range(random.randint(1, 2)):
        other = draw_prompt(random, length=prompt.shape[1], other_than=prompt)
        case.library.warm(other, [another(random, word) for word in words[: random.randint(0, 1)]])
    case.library.run(prompt, words)
    return case


def fault_in_decode(random, folder):
    """Of any size, in one or in all of the new words."""
    size = random.choice([0.01, 0.3, 1.0])
    place = (random.randrange(2), random.choice(["norm", "norm2", "q", "o", "down"]))

    def broken(tensor):
        generator = torch.Generator().manual_seed(7)
        return tensor + size * tensor.std() * torch.randn(tensor.shape, generator=generator)

    case = RunCase(
        random,
        folder,
        inputs=random.random() < 0.5,
        fault=(*place, broken),
        fault_tokens=random.choice([{1}, {2}, {1, 2, 3}]),
        **draw_options(random),
    )
    prompt = draw_prompt(random)
    if random.random() < 0.5:
        words = generate(case.model, case.recorder, prompt, 3)
    else:  # a model that says the same word again and again
        words = [torch.tensor([[random.randrange(1, VOCABULARY)]])] * 4
        feed(case.model, case.recorder, prompt, words)
    case.library.run(prompt, words)
    case.least = 0.9
    return case


class TwinCase:
    """The same graph twice: a file belongs to the file of the same rank, round and place."""

    least = 0.97

    def __init__(self, random, folder, ranks, steps=4, fault=None):
        self.folder = pathlib.Path(folder)
        torch.set_num_threads(1)
        options = dict(
            ranks=ranks,
            dtype=random.choice(["float32", "float16"]),
            split_programs=random.random() < 0.7,
            topology=random.random() < 0.7,
        )
        model = make_model(random.choice(["llama", "qwen2"]), 2, num_key_value_heads=4)
        prompt = draw_prompt(random)
        words = [torch.tensor([[random.randrange(1, VOCABULARY)]]) for _ in range(steps + 1)]
        for root, pid, its_fault in ((self.golden, 900, None), (self.mine, 950, fault)):
            Library(model, root, pid=pid, fault=its_fault, **options).run(prompt, words)

    @property
    def golden(self):
        return self.folder / "golden" / "ait_dump"

    @property
    def mine(self):
        return self.folder / "library" / "ait_dump"

    @staticmethod
    def place(path):
        """(rank, round, tensor)"""
        parts = pathlib.Path(path).parts
        at = parts.index("tensors")
        return int(parts[at + 1].split("_")[0]), int(parts[at + 2]), "/".join(parts[at + 3 :])

    def files(self, root):
        return {self.place(path) for path in (root / "tensors").rglob("outtensor*.bin")}

    def compare(self, ait, *arguments):
        out = self.folder / "out"
        done = ait("llm", "compare", "-gp", self.golden, "-mp", self.mine, "-o", out, "--extended", *arguments)
        assert done.returncode in (0, 2), done.stderr
        return done, read_rows(out) if out.exists() else []

    def judge(self, rows):
        golden, mine = self.files(self.golden), self.files(self.mine)
        found, wrong, named = set(), [], set()
        for row in rows:
            goldens = [self.place(path) for path in row["golden_data_path"].split(";") if path]
            mines = [self.place(path) for path in row["my_data_path"].split(";") if path]
            named.update(("golden", each) for each in goldens)
            named.update(("my", each) for each in mines)
            if goldens and mines:
                found.update(mines) if goldens == mines else wrong.append((goldens, mines, row["pairing_reason"]))
        if rows:  # what has no counterpart is a row, too
            every = {("golden", each) for each in golden} | {("my", each) for each in mine}
            wrong += [(*each, "is in no row") for each in sorted(every - named)]
        return golden & mine, found, wrong


def device_subset(random, folder):
    """`-device 1` on one side of the same run on two or four devices, with or without a fault."""
    ranks = random.choice([2, 4])
    fault = (1, "norm2", lambda t: t * 1.5) if random.random() < 0.5 else None
    case = TwinCase(random, folder, ranks, steps=1, fault=fault)
    kept = set(random.sample(range(ranks), random.randint(1, ranks - 1)))
    keep(random.choice([case.golden, case.mine]), ranks=kept)
    return case


def round_ranges(random, folder):
    """`-er 0,0` against `-er 1,3`: ranges that overlap or do not."""
    case = TwinCase(random, folder, random.choice([1, 2]))
    mine = random.choice([{0}, {0, 1}, {1, 2}])
    theirs = random.choice([{1, 2, 3}, {2, 3}, {0, 1, 2, 3}])
    sides = [case.golden, case.mine]
    random.shuffle(sides)
    keep(sides[0], rounds=mine)
    keep(sides[1], rounds=theirs)
    return case


def words_of_the_library(random, folder):
    """Of my side `-er 1,3` has left new words alone, which its graph for them counts from 0."""
    options = {**draw_options(random), "split_programs": True, "topology": random.random() < 0.5}
    case = RunCase(random, folder, inputs=random.random() < 0.5, **options)
    prompt = draw_prompt(random)
    words = [torch.tensor([[random.randrange(1, VOCABULARY)]]) for _ in range(5)]
    feed(case.model, case.recorder, prompt, words)
    case.library.run(prompt, words)
    keep(case.mine, rounds={1, 2, 3})
    case.recorded = {2, 3, 4}
    return case


class TorchCase:
    """The same modules twice, paired by name. Tokens in `parted` were fed something else."""

    least = 0.97

    def __init__(self, random, folder):
        self.folder, self.parted = pathlib.Path(folder), set()
        torch.set_num_threads(1)
        family, layers = random.choice(["llama", "qwen2"]), random.randint(2, 3)
        self.sides = {}
        for root in (self.golden, self.mine):
            model = make_model(family, layers)
            self.sides[root] = model, TorchRecorder(model, root, names=Names(None))

    golden = property(lambda self: self.folder / "golden" / "ait_dump")
    mine = property(lambda self: self.folder / "library" / "ait_dump")
    compare = TwinCase.compare

    def judge(self, rows):
        wanted, found, wrong = set(), set(), []
        place = lambda path: pathlib.Path(path).parts[-3:]
        for path in self.mine.rglob("output*.pth"):
            if int(place(path)[0]) not in self.parted and (self.golden / path.relative_to(self.mine)).exists():
                wanted.add(place(path))
        for row in rows:
            golden, mine = row["golden_data_path"], row["my_data_path"]
            if golden and mine:
                found.add(place(mine))
                if place(golden) != place(mine):
                    wrong.append((golden, mine, row["pairing_reason"]))
            if int(row["token_id"]) in self.parted and row["cosine_similarity"]:
                wrong.append((row["token_id"], mine, "is measured, though the runs were fed other tokens"))
        return wanted, found, wrong


def torch_twice(random, folder):
    """Words that part, or another prompt, which may be longer; or the same again."""
    case = TorchCase(random, folder)
    first = random.choice([0, 1, 2, None])
    prompt, words = draw_prompt(random), [torch.tensor([[random.randrange(1, VOCABULARY)]]) for _ in range(4)]
    other, others = prompt, list(words)
    if first == 0:
        other = draw_prompt(random, length=random.choice([prompt.shape[1], None]), other_than=prompt)
    elif first is not None:
        others[first - 1 :] = [another(random, word) for word in words[first - 1 :]]
    for (model, recorder), given, following in zip(case.sides.values(), (prompt, other), (words, others)):
        feed(model, recorder, given, following)
    case.parted = set() if first is None else set(range(first, 4))
    return case


KINDS = {
    "free running": free_running,
    "free running, no ids": free_running_without_ids,
    "another prompt": other_prompt,
    "several prompts": several_prompts,
    "warm-up as long as the prompt": warm_up,
    "fault in new words": fault_in_decode,
    "some devices of the same run": device_subset,
    "some rounds of the same run": round_ranges,
    "some words of the library": words_of_the_library,
    "torch twice": torch_twice,
}
