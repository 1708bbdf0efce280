#!/usr/bin/env python3
"""Fits the evidence weights to labelled pairs. `make fit` runs it; docs/evidence.md explains the model.

  fit.py prepare DATA WORK                     writes labelled sets to WORK: pairs that readers labelled, and generated ones
  fit.py fit EVIDENCE.tsv WEIGHTS.rs [PAIRS]   fits, prints how the weights perform, writes them to WEIGHTS.rs and, as
                                               settings, to EVIDENCE.toml; PAIRS has the sampling weights of labelled pairs

Between the two, `samestory eval WORK/*.ndjson --evidence EVIDENCE.tsv` measures every pair as the later article sees it on
arrival, so the first report from a template is measured as a first one.

The weights are fitted to pairs that people have labelled:

  natural     pairs of real articles that people have read, one set per source; each pair is weighted by the number of pairs
              that it represents in its pool, at most 10
  counter     agency copy in Urdu and newspaper rewrites of it: wholly derived against not derived

The generated sets are measured and reported beside them but do not influence the fit, because otherwise they cost precision on
real news (docs/quality.md):

  planted     perturb.py: copies that were edited, truncated, wrapped; reports with swapped facts; templates
  flashes     items of 24 to 50 words with one word changed, or a label or link added
  furniture   short articles with a common footer; each is an article of its own
  footer      the same, after the footer itself was sent as an article; and short items in German, Hindi and Arabic
  stubs       one stub under 200 headlines
  swaps       a report with all names replaced: another report from the same template
  extracts    200 words out of 5,000
"""
import collections, csv, json, os, random, re, subprocess, sys, zlib

TIE = {'copy', 'partial', 'version'}
APART = {'followup', 'template', 'furniture', 'unrelated'}


def rows(path):
    with open(path, encoding='utf-8') as file:
        return list(csv.DictReader(file, delimiter='\t', quoting=csv.QUOTE_NONE))


def articles(path):
    with open(path, encoding='utf-8') as file:
        return [json.loads(line) for line in file]


def save(path, all):
    with open(path, 'w', encoding='utf-8') as file:
        for one in all:
            file.write(json.dumps(one, ensure_ascii=False) + '\n')


# ---- The sets.

def judged(data):
    """The labelled pairs that count. One set has articles cut into pieces, and garbled texts were never news."""
    return [row for row in rows(f'{data}/natural.pairs.tsv')
            if not row['set'].startswith('l3cube') and row['mark'] != 'garbled' and row['label'] in TIE | APART]


def natural(data, work):
    """Writes one file of articles and one file of pairs per source."""
    pairs = collections.defaultdict(list)
    for row in judged(data):
        pairs[row['set']].append((row['a'], row['b'], 'same' if row['label'] in TIE else 'different'))
    for row in rows(f'{data}/counter_ur.pairs.tsv'):
        label = {'WD': 'same', 'ND': 'different'}.get(row['label'])
        if label:
            pairs['counter_ur'].append((*list(row.values())[:2], label))
    for name, listed in pairs.items():
        target = f'{work}/natural-{name}.ndjson'
        # The sources' own groups are dropped: readers decide here.
        keep = ('id', 'lang', 'title', 'body')
        save(target, ({key: one.get(key) for key in keep} for one in articles(f'{data}/{name}.ndjson')))
        with open(target.replace('.ndjson', '.pairs.tsv'), 'w', encoding='utf-8') as file:
            file.write('a\tb\tlabel\n' + ''.join('\t'.join(pair) + '\n' for pair in listed))


def sentences(text):
    return [part.strip() for part in re.split(r'(?<=[.!?])\s+', text) if part.strip()]


def flashes(data, work, chance):
    """Items of 24 to 50 words: one word changed, or a label or link added, among other items from the same desk."""
    made = []
    pool = articles(f'{data}/reuters21578_en.ndjson') + articles(f'{data}/wikinews_en_2020.ndjson')
    chance.shuffle(pool)
    for one in pool:
        words = ' '.join(sentences(one['body'])[:2]).split()
        if not 24 <= len(words) <= 50 or len(made) > 1200:
            continue
        base = dict(lang='en', title=one['title'], source_id=one['id'])
        made.append(dict(base, id=f'{one["id"]}-flash', body=' '.join(words), kind='flash', expect='unique'))
        for n in range(2):
            edited = list(words)
            edited[chance.randrange(len(edited))] = chance.choice(['reportedly', 'says', 'expects', 'likely', 'sees'])
            text = ' '.join(edited)
            if n:
                text = chance.choice(['BREAKING: ' + text, text + ' Read more: https://news.example/x', 'UPDATE 1 - ' + text])
            made.append(dict(base, id=f'{one["id"]}-flash{n}', body=text, kind='flash edited', expect='dup'))
    save(f'{work}/scene-flashes.ndjson', made)


# No list of notice words knows it: what keeps it apart must hold for any footer.
FOOTER = ('The Harbour Ledger has reported from this region since 1889. If you have a tip, call our news desk on 555 0147 or '
          'come to the office at the old customs house. Correspondents in Geneva, Nairobi, Singapore and Bogota contributed '
          'to our coverage this week. Editing by Martha Quill and Owen Pratt. Opinions expressed by columnists are their own '
          'and do not reflect those of the company, its shareholders or its affiliates. Prices are delayed by fifteen '
          'minutes. Read next: five things to know before the markets open, why house prices keep rising, the best places '
          'to eat by the river this weekend.')


def furniture(data, work, chance):
    """Short articles with a common footer, and the same with the footer itself sent as an article after the fortieth."""
    made = []
    for one in articles(f'{data}/wikinews_en_2020.ndjson') + articles(f'{data}/univnews_ar_en_ku.ndjson'):
        if one['lang'] != 'en':
            continue
        body = ' '.join(one['body'].split()[:chance.randint(60, 120)])
        made.append(dict(id=one['id'], lang='en', title=one['title'], body=f'{body}\n\n{FOOTER}', source_id=one['id'],
                         kind='furniture', expect='unique'))
    footer = dict(id='footer', lang='en', title='Example News', body=FOOTER, source_id='footer', kind='footer', expect='unique')
    save(f'{work}/scene-furniture.ndjson', made[:120])
    save(f'{work}/scene-footer.ndjson', made[:40] + [footer] + made[40:120])


# The same footer in other languages.
FOOTERS = {
    'de': 'Der Hafenbote berichtet seit 1889 aus dieser Region. Wenn Sie einen Hinweis haben, rufen Sie unsere Redaktion unter 555 0147 an '
          'oder kommen Sie in das Büro im alten Zollhaus. Korrespondenten in Genf, Nairobi, Singapur und Bogotá haben diese Woche zu unserer '
          'Berichterstattung beigetragen. Redaktion: Martha Kiel und Owen Pratt. Meinungen von Kolumnisten sind ihre eigenen und geben nicht '
          'die des Verlags, seiner Gesellschafter oder verbundener Unternehmen wieder. Kurse werden um fünfzehn Minuten verzögert angezeigt. '
          'Lesen Sie auch: fünf Dinge, die man vor Börsenbeginn wissen muss, warum die Mieten weiter steigen, die besten Lokale am Fluss.',
    'hi': 'बंदरगाह समाचार इस क्षेत्र से 1889 से खबरें दे रहा है। अगर आपके पास कोई जानकारी है तो हमारे समाचार कक्ष को 555 0147 पर फोन करें या पुराने सीमा शुल्क भवन में हमारे दफ्तर आएं। '
          'जिनेवा, नैरोबी, सिंगापुर और बोगोटा के संवाददाताओं ने इस सप्ताह हमारी कवरेज में योगदान दिया। संपादन मार्था और ओवेन ने किया। स्तंभकारों के विचार उनके अपने हैं और कंपनी, '
          'उसके शेयरधारकों या सहयोगियों के विचार नहीं हैं। भाव पंद्रह मिनट की देरी से दिखाए जाते हैं। आगे पढ़ें: बाजार खुलने से पहले जानने लायक बातें, मकानों के दाम क्यों बढ़ रहे हैं।',
    'ar': 'تنقل صحيفة الميناء أخبار هذه المنطقة منذ عام 1889. إذا كانت لديك معلومة فاتصل بغرفة الأخبار على الرقم 555 0147 أو تفضل بزيارة مكتبنا في مبنى '
          'الجمارك القديم. ساهم مراسلونا في جنيف ونيروبي وسنغافورة وبوغوتا في تغطيتنا هذا الأسبوع. تحرير مارثا كويل وأوين برات. الآراء التي يعبر عنها كتاب '
          'الأعمدة تخصهم وحدهم ولا تعكس آراء الشركة أو مساهميها أو الشركات التابعة لها. تعرض الأسعار متأخرة خمس عشرة دقيقة. اقرأ أيضا: خمسة أمور ينبغي '
          'معرفتها قبل افتتاح الأسواق، ولماذا تواصل أسعار المنازل الارتفاع، وأفضل الأماكن لتناول الطعام على ضفة النهر.',
}


def footers(data, work, chance):
    """At most ninety words of German, Hindi or Arabic above a footer, which was itself sent as the first article."""
    made = []
    pool = articles(f'{data}/ntrex_19lang.ndjson') + articles(f'{data}/bbc_hi.ndjson') + articles(f'{data}/univnews_ar_en_ku.ndjson')
    for language, text in FOOTERS.items():
        made.append(dict(id=f'footer-{language}', lang=language, title='Example News', body=text, source_id=f'footer-{language}',
                         kind='footer', expect='unique'))
        for one in [one for one in pool if one['lang'] == language][-80:]:
            body = ' '.join(one['body'].split()[:90])
            made.append(dict(id=one['id'], lang=language, title=one.get('title'), body=f'{body}\n\n{text}', source_id=one['id'],
                             kind='furniture', expect='unique'))
    save(f'{work}/scene-footers.ndjson', made)


# A short one, and the rest of a longer one. No list of notice words knows them.
STUB = ('The page that you are trying to reach is not here at this moment. Please come back later or return to the front of the site, '
        'where the news of the day is waiting.')
MORE = ('The information in this publication is supplied as is, without any express or implied warranty. We accept no responsibility '
        'or liability for the accuracy, content, images or videos. The government of the country in which this page is read may require '
        'that parts of it be hidden.')


def stubs(data, work, chance):
    """One stub under the headlines of 200 real articles, and a longer one."""
    pool = articles(f'{data}/wikinews_en_2020.ndjson') + articles(f'{data}/reuters21578_en.ndjson')[:400]
    titles = list(dict.fromkeys(one['title'] for one in pool if one.get('title')))
    chance.shuffle(titles)
    for name, body in (('stubs', STUB), ('stubs-long', f'{STUB} {MORE}')):
        save(f'{work}/scene-{name}.ndjson', [dict(id=f'page-{n}', lang='en', title=title, body=body, source_id=f'page-{n}', kind='stub',
                                                  expect='unique') for n, title in enumerate(titles[:200])])


def swaps(data, work, chance):
    """A report with all names replaced: another report from the same template."""
    made = []
    pool = [one for one in articles(f'{data}/reuters21578_en.ndjson') if 60 < len(one['body'].split()) < 200]
    chance.shuffle(pool)
    names = sorted({name for one in pool for name in re.findall(r'(?<=[a-z,] )[A-Z][a-z]{3,}', one['body'])})
    name = re.compile(r'\b[A-Z][a-z]{3,}\b')
    for one in pool[:150]:
        found = sorted(set(name.findall(one['body'])))
        other = dict(zip(found, chance.sample(names, len(found)))) if len(found) <= len(names) else {}
        body = name.sub(lambda match: other.get(match.group(), match.group()), one['body'])
        made.append(dict(id=one['id'], lang='en', title=one['title'], body=one['body'], source_id=one['id'], kind='form',
                         expect='unique'))
        swap = f'{one["id"]}-swap'
        made.append(dict(id=swap, lang='en', title=None, body=body, source_id=swap, kind='names swapped', expect='unique'))
    save(f'{work}/scene-swaps.ndjson', made)


def extracts(data, work, chance):
    """Two hundred words out of five thousand."""
    sources = ('wikinews_en_2020', 'univnews_ar_en_ku', 'semeval22_task8')
    pool = [one for source in sources for one in articles(f'{data}/{source}.ndjson')
            if one['lang'] == 'en' and len(one['body'].split()) > 250]
    chance.shuffle(pool)
    made, count = [], 0
    while len(made) < 200 and pool:
        words = []
        while len(words) < 5000 and pool:
            words += pool.pop()['body'].split()
        count += 1
        base = dict(lang='en', title=None, source_id=f'long{count}')
        made.append(dict(base, id=f'long{count}', body=' '.join(words), kind='long', expect='unique'))
        for n in range(4):
            start = chance.randrange(len(words) - 200)
            made.append(dict(base, id=f'long{count}-{n}', body=' '.join(words[start:start + 200]), kind='extract', expect='dup'))
    save(f'{work}/scene-extracts.ndjson', made)


def scenes(data, work):
    """The generated sets that do not come from perturb.py."""
    for scene in (flashes, furniture, footers, stubs, swaps, extracts):
        scene(data, work, random.Random(7))


def prepare(data, work):
    os.makedirs(work, exist_ok=True)
    natural(data, work)
    scenes(data, work)
    sources = [f'{data}/{name}.ndjson' for name in ('ntrex_19lang', 'wikinews_en_2020', 'wikinews_ja')]
    subprocess.run([sys.executable, f'{data}/perturb.py', *sources, '-o', f'{work}/planted.ndjson', '--seed', '7',
                    '--limit', '260', '--per-doc', '6', '--templates', '6'], check=True)


# ---- The fit.

KNOTS = [0, .2, .4, .6, .8, 1]
STEPS = len(KNOTS) - 1
# These measures count against a copy; all others count for one.
AGAINST = {'numbers-replaced', 'brevity', 'added', 'wall', 'digest'}
# Rules rather than evidence: too few pairs show them, so their steps are fixed.
FIXED = {'added': [2.0, 1.5, 1.0, 0.5, 0.5], 'wall': [2.0] * 5, 'digest': [2.0] * 5}
# The smallest value of a step. No labelled copy has less than half of its names or numbers in common, and few templates with all
# names replaced were labelled, so the labelled pairs cannot determine how steep the curve is there.
FLOORS = {'names': [3.0, 4.0, 0.3, 0.0, 0.0], 'numbers': [1.0, 3.0, 1.2, 0.4, 0.4]}
# A false copy hides news and a missed one costs a few cents, so this much more evidence is asked for.
CAUTION = 0.2
# Draws steps towards their floors, and the steps of one curve towards each other. Strong: most judged pairs come from one source, and
# weights that follow its peculiarities are worth less on others.
PENALTY, SMOOTH = 20.0, 500.0
# By how much log-odds are stretched at the end. The penalty draws them together, and the caution makes copies right more often than
# they say. On stories that were left out, the calibration error of copies is 0.07 at 1.4, 0.04 at 1.7, 2.3 and 2.6, and 0.035 at 2.0.
# Chosen by hand. No decision at even odds changes.
STRETCH = 2.0
# No pair speaks for more pairs of the pool than this: single heavy ones would decide.
HEAVIEST = 10
# Weight of each family, as a fraction of all natural pairs together. Unlisted families have none.
SHARES = {'natural': 1.0, 'counter': 0.03}
MADE = ('planted', 'flashes', 'furniture', 'footer', 'stubs', 'swaps', 'extracts')
# Number of folds of the labelled pairs; each is judged under weights fitted to the others.
PARTS = 8
# At this similarity texts are equal, which is not a matter of evidence.
EQUAL = 0.9999
ABOUT = ('set', 'old', 'new', 'same', 'kind', 'candidate', 'similarity', 'language', 'tokens')


def source(row):
    return os.path.basename(row['set']).removesuffix('.ndjson')


def family(name):
    return next((key for key in ('counter', *MADE) if key in name), 'natural')


def sampling_weights(path):
    """The row of each labelled pair, in both orders; it represents `weight` pairs of the pool."""
    found = {}
    for row in rows(path) if path else []:
        found[row['a'], row['b']] = found[row['b'], row['a']] = row
    return found


class Groups:
    """Articles that a chain of pairs connects."""

    def __init__(self, pairs):
        self.first = {}
        for one, other in pairs:
            self.first[self.of(one)] = self.of(other)

    def of(self, id):
        """The article that represents the group of this one: itself if no pair names it."""
        while self.first.setdefault(id, id) != id:
            id = self.first[id]
        return id


class Table:
    """Measured pairs as a matrix: five columns for each measure, one for each segment of its curve."""

    def __init__(self, evidence, pairs=None):
        import numpy as np
        listed = rows(evidence)
        self.measures = [name for name in listed[0] if name not in ABOUT]
        self.judged = sampling_weights(pairs)
        self.missed = [row for row in listed if row['candidate'] == '0' and row['same'] == '1']
        compared = [row for row in listed if row['candidate'] == '1']
        self.equal = [row for row in compared if float(row['similarity']) >= EQUAL]
        self.rows = [row for row in compared if float(row['similarity']) < EQUAL]
        self.neutral = {measure: self._neutral(measure) for measure in self.measures}
        self.x = self._matrix()
        self.y = np.array([float(row['same']) for row in self.rows])
        self.sources = np.array([source(row) for row in self.rows])
        self.families = np.array([family(name) for name in self.sources])
        self.weight = self._weights()

    def _neutral(self, measure):
        """The value that contributes nothing: the usual one, or zero for measures that count against a copy."""
        import numpy as np
        known = [float(row[measure]) for row in self.rows if row[measure] != '' and family(source(row)) not in MADE]
        return 0.0 if measure in AGAINST or not known else round(float(np.median(known)), 2)

    def _matrix(self):
        import numpy as np
        x = np.zeros((len(self.rows), len(self.measures) * STEPS))
        for m, measure in enumerate(self.measures):
            sign = -1 if measure in AGAINST else 1
            neutral = climbs(self.neutral[measure])
            for at, row in enumerate(self.rows):
                if row[measure] != '':
                    x[at, m * STEPS:(m + 1) * STEPS] = [
                        sign * (here - there) for here, there in zip(climbs(float(row[measure])), neutral)]
        return x

    def _weights(self):
        import numpy as np
        weight = np.ones(len(self.rows))
        for at, row in enumerate(self.rows):
            known = self.judged.get((row['old'], row['new']))
            if known:
                weight[at] = min(float(known['weight']), HEAVIEST)
        total = weight[self.families == 'natural'].sum()
        for key in set(self.families):
            mine = self.families == key
            weight[mine] *= SHARES.get(key, 0.0) * total / weight[mine].sum()
        return weight

    def fit(self, use=None):
        """Steps of all curves, and the prior, from the rows in `use`: all of them if it is not given."""
        use = self.weight > 0 if use is None else use & (self.weight > 0)
        place = lambda curves: {self.measures.index(name) * STEPS + k: step for name, steps in curves.items()
                                for k, step in enumerate(steps)}
        return logistic(self.x[use], self.y[use], self.weight[use], place(FIXED), place(FLOORS))

    def left_out(self, parts):
        """Log-odds of labelled pairs under weights fitted without their fold; zero for others."""
        import numpy as np
        held = np.zeros(len(self.rows))
        for part in sorted(set(parts[self.weight > 0])):
            mine = parts == part
            steps, prior = self.fit(~mine)
            held[mine] = self.x[mine] @ steps + prior - CAUTION
        return held

    def without_source(self):
        """The same, without their source."""
        return self.left_out(self.sources)

    def without_story(self):
        """The same, without an eighth of the stories: pairs that have an article in common stay together."""
        import numpy as np
        stories = Groups((row['old'], row['new']) for row in self.rows)
        return self.left_out(np.array([zlib.crc32(stories.of(row['old']).encode()) % PARTS for row in self.rows]))


def climbs(share):
    """How far a value reaches into each segment of a curve."""
    return [min(max((share - low) / (high - low), 0), 1) for low, high in zip(KNOTS, KNOTS[1:])]


def logistic(x, y, weight, fixed, floors):
    """Logistic regression with steps of at least their floors, so that more overlap never counts against a copy."""
    import numpy as np
    from scipy import optimize
    free = [at for at in range(x.shape[1]) if at not in fixed]
    offset = sum((x[:, at] * value for at, value in fixed.items()), np.zeros(len(y)))
    floor = np.array([floors.get(at, 0.0) for at in free])
    xf = x[:, free]
    n = xf.shape[1]

    def loss(w):
        z = xf @ w[:n] + w[n] + offset
        residual = weight * (1 / (1 + np.exp(-z)) - y)
        above = w[:n] - floor
        value = (weight * (np.logaddexp(0, z) - y * z)).sum() + PENALTY * (above ** 2).sum()
        gradient = np.append(xf.T @ residual, residual.sum())
        gradient[:n] += 2 * PENALTY * above
        for at in range(0, n, STEPS):
            difference = np.diff(above[at:at + STEPS])
            value += SMOOTH * (difference ** 2).sum()
            gradient[at:at + STEPS - 1] -= 2 * SMOOTH * difference
            gradient[at + 1:at + STEPS] += 2 * SMOOTH * difference
        return value, gradient

    bounds = [(low, 6) for low in floor] + [(None, None)]
    found = optimize.minimize(loss, np.append(np.maximum(floor, 0.1), 0), jac=True, bounds=bounds, method='L-BFGS-B',
                              options=dict(maxiter=2000))
    steps = np.zeros(x.shape[1])
    steps[free] = found.x[:n]
    for at, value in fixed.items():
        steps[at] = value
    return steps, found.x[n]


def report(table, fitted, stories, sources):
    """Performance of the weights on the fitted pairs, and on held-out stories and sources."""
    judged = table.families == 'natural'

    def line(title, odds, mask):
        called = mask & (odds >= 0)
        right = (table.weight * table.y)[called].sum()
        precision = right / max(table.weight[called].sum(), 1e-9)
        recall = right / max((table.weight * table.y)[mask].sum(), 1e-9)
        print(f'{title:28} precision {precision:.3f} recall {recall:.3f}   rows {mask.sum()}')

    missed = collections.Counter(source(row) for row in table.missed)
    print('rows', len(table.rows), 'missed as candidates', dict(missed))
    line('natural, fitted', fitted, judged)
    line('natural, story held out', stories, judged)
    line('natural, source held out', sources, judged)
    for more in (-0.4, -0.2, 0.2, 0.4, 0.8):
        line(f'  … requiring {more:+}', sources - more, judged)
    for name in sorted(set(table.sources[table.weight > 0])):
        line(name, sources, table.sources == name)
    kinds = collections.defaultdict(list)
    for at, row in enumerate(table.rows):
        known = table.judged.get((row['old'], row['new']))
        kind = known['label'] if known and judged[at] else f"{table.families[at]}:{row['kind']}:{row['same']}"
        left = sources[at] if table.weight[at] > 0 else fitted[at]
        kinds[kind].append((fitted[at] >= 0, left >= 0))
    for kind, all in sorted(kinds.items()):
        print(f'   {kind:36} called {sum(a for a, _ in all):5} of {len(all):5}   source held out {sum(h for _, h in all):5}')


def brackets(values):
    return '[' + ', '.join(f'{value:.3f}' for value in values) + ']'


def as_rust(head, table, curves, prior):
    lines = [f'        prior: {prior:.3f},', '        steps: [']
    for measure, steps in curves.items():
        lines += [f'            // {measure}', f'            {brackets(steps)},']
    neutral = ', '.join(str(float(table.neutral[name])) for name in table.measures)
    lines += ['        ],', f'        neutral: [{neutral}],', '    };', '}', '']
    return head + '\n'.join(lines)


def as_settings(table, curves, prior):
    lines = ['[match.weights]', f'prior = {prior:.3f}']
    for measure, steps in curves.items():
        lines += [f'[match.weights.measures.{measure}]', f'steps = {brackets(steps)}',
                  f'neutral = {float(table.neutral[measure])}']
    return '\n'.join(lines) + '\n'


def fit(evidence, target, pairs=None):
    table = Table(evidence, pairs)
    steps, prior = table.fit()
    prior -= CAUTION
    stories = table.without_story()
    report(table, table.x @ steps + prior, stories, table.without_source())
    steps, prior = steps * STRETCH, prior * STRETCH
    curves = {measure: steps[m * STEPS:(m + 1) * STEPS] for m, measure in enumerate(table.measures)}
    for measure, curve in curves.items():
        print(f'{measure:18} neutral {table.neutral[measure]:.2f}  ' + ' '.join(f'{step:6.3f}' for step in curve)
              + f'   sum {curve.sum():.2f}')
    print(f'prior {prior:.3f}')
    with open(target, encoding='utf-8') as file:
        text = file.read()
    with open(target, 'w', encoding='utf-8') as file:
        file.write(as_rust(text[:text.index('        prior:')], table, curves, prior))
    with open(os.path.splitext(evidence)[0] + '.toml', 'w', encoding='utf-8') as file:
        file.write(as_settings(table, curves, prior))


if __name__ == '__main__':
    commands = {'prepare': prepare, 'fit': fit}
    command, *arguments = sys.argv[1:] or ['']
    if command not in commands:
        sys.exit(__doc__)
    commands[command](*arguments)
