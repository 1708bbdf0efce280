"""What other models reach on the labelled pairs when a source is held out: the ceiling to hold samestory's additive model against.

Two kinds of features: samestory's measures, which come from sketches, and exact ones computed from the full texts (words in common,
weighted by rarity or not, long verbatim passages, whole sentences, numbers, capitalised words, openings, headlines). Two
models: logistic regression and boosted trees (scikit-learn). Every source is judged by a model that was trained without it.
"""
import collections, math, os, re

# The sets are small, and the threads of the trees would wait for each other. Read when scikit-learn is loaded.
os.environ.setdefault('OMP_NUM_THREADS', '1')

import fit

UNSPACED = {'ja', 'zh', 'zh-Hant', 'th'}
# Letters of a word that count, so that an ending does not make another word.
STEM = 6
# Tokens of a passage that counts as verbatim.
VERBATIM = {True: 16, False: 8}
# Tokens of the opening.
OPENING = 40


def tokens(text, language):
    words = re.findall(r'\w+', text.casefold())
    if language not in UNSPACED:
        return words
    letters = ''.join(words)
    return [letters[at:at + 2] for at in range(max(len(letters) - 1, 1))]


def sentences(text):
    parts = re.split(r'(?<=[.!?।。؟۔])\s*|\n+', text)
    return {re.sub(r'\W+', '', part) for part in parts if len(part) > 20}


def overlap(a, b):
    return len(a & b) / max(min(len(a), len(b)), 1)


def verbatim(a, b, length):
    """Fraction of the shorter text that lies in passages of at least this many tokens that both have."""
    passages = {tuple(a[at:at + length]) for at in range(len(a) - length + 1)}
    covered = set()
    for at in range(len(b) - length + 1):
        if tuple(b[at:at + length]) in passages:
            covered.update(range(at, at + length))
    return len(covered) / max(min(len(a), len(b)), 1)


def exact(a, b, weight):
    """The exact features of two articles. `weight` says how rare a word is."""
    language = a['lang']
    of_a, of_b = tokens(a['body'], language), tokens(b['body'], language)
    stems = lambda words: {word[:STEM] for word in words}
    words_a, words_b = stems(of_a), stems(of_b)
    sum_of = lambda words: sum(map(weight, words))
    lighter = max(min(sum_of(words_a), sum_of(words_b)), 1e-9)
    numbers_a, numbers_b = (set(re.findall(r'\d+(?:[.,]\d+)*', one['body'])) for one in (a, b))
    names_a, names_b = (stems(re.findall(r'(?<=[\w,;)] )([A-ZÀ-ÞА-Я]\w+)', one['body'])) for one in (a, b))
    opening_a, opening_b = stems(of_a[:OPENING]), stems(of_b[:OPENING])
    title_a, title_b = (stems(tokens(one.get('title') or '', language)) for one in (a, b))
    headline = [overlap(title, body) for title, body in ((title_a, words_b), (title_b, words_a)) if title]
    return [overlap(words_a, words_b), sum_of(words_a & words_b) / lighter,
            sum_of(words_a & words_b) / max(sum_of(words_a | words_b), 1e-9),
            verbatim(of_a, of_b, VERBATIM[language in UNSPACED]), overlap(sentences(a['body']), sentences(b['body'])),
            len(numbers_a & numbers_b), min(len(numbers_a), len(numbers_b)), len(names_a & names_b),
            min(len(names_a), len(names_b)), min(headline, default=math.nan),
            sum_of(opening_a & opening_b) / max(min(sum_of(opening_a), sum_of(opening_b)), 1e-9)]


def exact_features(data, table, rows):
    """One list of features for each of these rows of the table."""
    found = {}
    for name in sorted({fit.source(table.rows[at]) for at in rows}):
        texts = {one['id']: one for one in fit.articles(f'{data}/{name.removeprefix("natural-")}.ndjson')}
        seen, of = collections.Counter(), collections.Counter(one['lang'] for one in texts.values())
        for one in texts.values():
            seen.update((one['lang'], word[:STEM]) for word in set(tokens(one['body'], one['lang'])))
        for at in rows:
            row = table.rows[at]
            if fit.source(row) == name:
                language = texts[row['old']]['lang']
                weight = lambda word: math.log(1 + of[language] / (1 + seen[language, word]))
                found[at] = exact(texts[row['old']], texts[row['new']], weight)
    return [found[at] for at in rows]


def models(data, table):
    """By name, the log-odds of the rows of the table; rows that no model judges have 0."""
    import numpy as np
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    rows = [at for at, family in enumerate(table.families) if family in ('natural', 'counter')]
    measured = [name for name in table.measures if name not in ('wall', 'digest')]
    number = lambda text: float(text) if text else math.nan
    sketched = np.array([[number(table.rows[at][name]) for name in measured] for at in rows])
    full = np.array(exact_features(data, table, rows))
    y, weight, sources = table.y[rows], table.weight[rows], table.sources[rows]
    logistic = lambda: make_pipeline(SimpleImputer(strategy='median'), StandardScaler(), LogisticRegression(C=.03, max_iter=1000))
    trees = lambda: HistGradientBoostingClassifier(max_iter=120, learning_rate=.06, max_leaf_nodes=6, min_samples_leaf=12,
                                                   l2_regularization=5, random_state=7)
    found = {}
    for features, x in (('the measures', sketched), ('exact features', full), ('both', np.hstack([sketched, full]))):
        for name, make, option in (('logistic regression', logistic, 'logisticregression__sample_weight'),
                                   ('boosted trees', trees, 'sample_weight')):
            odds = np.zeros(len(table.rows))
            for source in sorted(set(sources)):
                mine = sources == source
                model = make().fit(x[~mine], y[~mine], **{option: weight[~mine]})
                share = np.clip(model.predict_proba(x[mine])[:, 1], 1e-6, 1 - 1e-6)
                odds[np.array(rows)[mine]] = np.log(share / (1 - share))
            found[f'{name} over {features}'] = odds
    return found
