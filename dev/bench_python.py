#!/usr/bin/env python3
"""Benchmarks the Python package beside rensa, datasketch and text-dedup: raw texts to clusters, on the same articles.

  bench_python.py DATA [ARTICLES]

The articles are those of DATA and edited copies of them: one in twenty words replaced, sentences left out at the end, a site's
furniture around the text. Which of them belong together is known, so the table has the pairs of the clusters beside the time.
Articles of DATA that repeat each other by nature count against every system alike. Peers run with 128 permutations, shingles of
three words and a threshold of 0.5, which is where edited copies lie. CPU time is that of all threads and processes: compare it
when the machine has other work.
"""
import glob, json, os, pickle, random, re, resource, subprocess, sys, tempfile, time
from collections import defaultdict

THRESHOLD, PERMUTATIONS, WORDS = 0.5, 128, 3
TEXT_DEDUP = 'text-dedup==0.4.0'
FURNITURE = ('Skip to content. Sign in to read all articles. Share this story with friends and colleagues. ',
             ' Read more: the ten stories of the week. All rights reserved. Subscribe to our newsletter today.')


def articles(data, count):
    """Texts in random order, and the number of the article that each was made from."""
    bases = []
    for path in sorted(glob.glob(f'{data}/*.ndjson')):
        with open(path, encoding='utf-8') as lines:
            bodies = (json.loads(line).get('body') or '' for line in lines)
            bases += [body for body in bodies if len(body.split()) >= 50]
    bases = list(dict.fromkeys(bases))
    chance = random.Random(7)
    chance.shuffle(bases)
    bases = bases[:max(1, count // 3)]
    made = list(enumerate(bases))
    while len(made) < count:
        number = chance.randrange(len(bases))
        made.append((number, edited(bases[number], bases, chance)))
    made = made[:count]
    chance.shuffle(made)
    return [text for _, text in made], [number for number, _ in made]


def edited(text, others, chance):
    kind = chance.randrange(4)
    if kind == 0:
        return text
    if kind == 1:
        words = text.split(' ')
        donor = chance.choice(others).split(' ')
        for at in range(len(words)):
            if chance.random() < 0.05:
                words[at] = chance.choice(donor)
        return ' '.join(words)
    if kind == 2:
        sentences = re.split(r'(?<=[.!?。।]) ', text)
        return ' '.join(sentences[:max(1, len(sentences) * 4 // 5)])
    return FURNITURE[0] + text + FURNITURE[1]


def words(text):
    found = re.findall(r'\w+', text.lower())
    return {' '.join(found[at:at + WORDS]) for at in range(max(1, len(found) - WORDS + 1))}


class Groups:
    """Joins numbers."""

    def __init__(self, count):
        self.parent = list(range(count))

    def find(self, one):
        while self.parent[one] != one:
            self.parent[one] = one = self.parent[self.parent[one]]
        return one

    def join(self, one, other):
        one, other = self.find(one), self.find(other)
        self.parent[max(one, other)] = min(one, other)

    def all(self):
        return [self.find(one) for one in range(len(self.parent))]


def samestory(texts):
    import samestory
    return samestory.dedupe(texts).column('cluster_id')


def rensa(texts):
    from rensa import RMinHash, RMinHashLSH
    groups, index = Groups(len(texts)), RMinHashLSH(threshold=THRESHOLD, num_perm=PERMUTATIONS, num_bands=32)
    signatures = []
    for number, text in enumerate(texts):
        signature = RMinHash(num_perm=PERMUTATIONS, seed=42)
        signature.update(sorted(words(text)))
        # Its index gives candidates; it is for the caller to compare them.
        for other in index.query(signature):
            if signature.jaccard(signatures[other]) >= THRESHOLD:
                groups.join(number, other)
        signatures.append(signature)
        index.insert(number, signature)
    return groups.all()


def datasketch(texts):
    from datasketch import MinHash, MinHashLSH
    groups, index = Groups(len(texts)), MinHashLSH(threshold=THRESHOLD, num_perm=PERMUTATIONS)
    for number, text in enumerate(texts):
        signature = MinHash(num_perm=PERMUTATIONS)
        signature.update_batch([shingle.encode() for shingle in words(text)])
        for other in index.query(signature):
            groups.join(number, other)
        index.insert(number, signature)
    return groups.all()


def text_dedup(texts, packages, work):
    """Its command, on a data set of datasets."""
    import datasets
    datasets.disable_progress_bars()
    datasets.Dataset.from_dict({'text': texts}).save_to_disk(f'{work}/texts')
    environment = {**os.environ, 'PYTHONPATH': packages, 'HF_HUB_OFFLINE': '1'}
    done = subprocess.run(
        [sys.executable, '-m', 'text_dedup.minhash', '--path', f'{work}/texts', '--local', '--output', f'{work}/out',
         '--column', 'text', '--ngram', str(WORDS), '--threshold', str(THRESHOLD), '--num_perm', str(PERMUTATIONS),
         '--min_length', '1', '--cache_dir', f'{work}/cache', '--debug'],
        env=environment, cwd=work, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f'text-dedup failed:\n{done.stderr[-3000:]}')
    # It is an object of a class of text-dedup.
    sys.path.append(packages)
    with open(f'{work}/out/uf.pkl', 'rb') as file:
        found = pickle.load(file)
    groups = Groups(len(texts))
    for one, other in found.parent.items():
        groups.join(one, other)
    return groups.all()


def pairs(labels):
    sizes = defaultdict(int)
    for label in labels:
        sizes[label] += 1
    return sum(size * (size - 1) // 2 for size in sizes.values())


def score(clusters, truth):
    """Precision and recall over the pairs of articles that share a cluster."""
    both, found, planted = pairs(list(zip(clusters, truth))), pairs(clusters), pairs(truth)
    return both / max(found, 1), both / max(planted, 1)


def spent():
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    texts, truth = articles(sys.argv[1], int(sys.argv[2]) if len(sys.argv) == 3 else 100_000)
    if not texts:
        sys.exit(f'no articles in {sys.argv[1]}/*.ndjson')
    size = sum(map(len, texts)) / 1e6
    print(f'{len(texts):,} articles, {size:,.0f} million characters, {os.cpu_count()} cores')
    print(f'{"":<12}{"seconds":>9}{"CPU s":>9}{"articles/s":>12}{"precision":>11}{"recall":>8}')
    with tempfile.TemporaryDirectory() as work:
        packages = f'{work}/packages'
        subprocess.run([sys.executable, '-m', 'pip', 'install', '-q', '--disable-pip-version-check', '--no-deps', '--target',
                        packages, TEXT_DEDUP], check=True)
        for name, system in (('samestory', samestory), ('rensa', rensa), ('datasketch', datasketch),
                             ('text-dedup', lambda texts: text_dedup(texts, packages, work))):
            start, cpu = time.perf_counter(), spent()
            clusters = system(texts)
            seconds, cpu = time.perf_counter() - start, spent() - cpu
            precision, recall = score(clusters, truth)
            print(f'{name:<12}{seconds:>9.1f}{cpu:>9.1f}{len(texts) / seconds:>12,.0f}{precision:>11.3f}{recall:>8.3f}',
                  flush=True)


if __name__ == '__main__':
    main()
