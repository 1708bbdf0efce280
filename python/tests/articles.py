"""Articles for the tests."""

FERRY = (
    "The ferry between Saltmere and Gull Island will run again from Monday after six weeks of repairs, the operator Northline "
    "said on Thursday. Engineers replaced both of the engines and a cracked propeller shaft at the yard in Brackwater, at a "
    "cost of 2.4 million. About 900 islanders depend on the crossing, and many have paid for small boats since the breakdown "
    "in September. Season tickets will be extended by 45 days."
)
FERRY_EDITED = FERRY.replace("Thursday", "Friday evening").replace("many", "some")
HARVEST = (
    "Growers in the eastern valleys expect the smallest apple harvest in nine years after frost in April killed a third of the "
    "blossoms. The cooperative in Pellworth will pay its 140 members an advance, and the ministry has promised loans. Cider "
    "makers say that prices will rise before winter."
)


def story(number: int) -> str:
    """A different text of invented words for every number."""
    chance, words = number + 1, []
    for _ in range(120):
        chance = (chance * 6_364_136_223_846_793_005 + 1_442_695_040_888_963_407) % 2**64
        word = chance >> 40
        words.append(
            ("lan", "ber", "to", "mi", "ser")[word % 5]
            + ("ra", "dun", "kel", "vis")[word // 5 % 4]
            + "aeiou"[word // 20 % 5]
            + ("st", "nd", "r", "m")[word // 100 % 4]
        )
    return " ".join(words)
