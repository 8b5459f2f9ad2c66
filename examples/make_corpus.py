#!/usr/bin/env python3
"""Writes the small corpus that the examples train on: stories, letters, talk, recipes, logs and sums from one village.

usage: examples/make_corpus.py [--check] [FILE]

  FILE     where to write it (default: corpus.txt beside this script)
  --check  write nothing; exit 1 unless FILE is what this script would write

The text is made from the word lists and sentence patterns below and from nothing else. The same script always writes
the same bytes. People keep their trades, towns and pets throughout, prices add up and sums are right, so there is
something to learn beyond spelling; names, numbers and choices are random, so no model can get it all right.
"""
import pathlib
import sys

BYTES = 500_000
SEED = 20261116


class Chance:
    """Random numbers that are the same under every version of Python."""

    def __init__(self, seed):
        self.state = seed

    def below(self, bound):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 33) % bound

    def between(self, low, high):
        return low + self.below(high - low + 1)

    def one(self, options):
        return options[self.below(len(options))]

    def some(self, options, count):
        rest = list(options)
        return [rest.pop(self.below(len(rest))) for _ in range(count)]

    def happens(self, percent):
        return self.below(100) < percent


class Person:
    def __init__(self, name, they, them, their, trade, town, pet):
        self.name, self.they, self.them, self.their = name, they, them, their
        self.trade, self.town, self.pet = trade, town, pet


def she(name, trade, town, pet):
    return Person(name, "she", "her", "her", trade, town, pet)


def he(name, trade, town, pet):
    return Person(name, "he", "him", "his", trade, town, pet)


PEOPLE = [
    she("Ada", "miller", "Elmford", "a grey goose called Duchess"),
    he("Bruno", "ferryman", "Low Quay", "an old dog called Anchor"),
    she("Clara", "schoolteacher", "Elmford", "a tortoise called Professor"),
    he("Dorin", "clockmaker", "Three Bridges", "a canary called Minute"),
    she("Edda", "baker", "Three Bridges", "a cat called Crumb"),
    he("Felix", "lighthouse keeper", "Cape Tarry", "a gull called Admiral"),
    she("Greta", "doctor", "Low Quay", "a parrot called Pardon"),
    he("Hamid", "gardener", "Elmford", "a hedgehog called Thistle"),
    she("Ines", "captain", "Cape Tarry", "a ginger cat called Rudder"),
    he("Jonas", "postman", "Hollow Hill", "a pony called Stamp"),
    she("Kaya", "carpenter", "Hollow Hill", "a beaver called Splinter"),
    he("Lorenz", "shopkeeper", "Three Bridges", "a white mouse called Penny"),
    she("Mira", "beekeeper", "Hollow Hill", "ten thousand bees and a dog called Wax"),
    he("Nils", "fisherman", "Cape Tarry", "an otter called Slip"),
    she("Oona", "weaver", "Low Quay", "a lamb called Bobbin"),
    he("Pavel", "blacksmith", "Elmford", "a raven called Cinder"),
]
PLACES = ["the mill", "the old bridge", "the market square", "the harbour", "the school", "the orchard",
          "the lighthouse", "the forest path", "the station", "the reading room", "the well",
          "the hill behind the church"]
THINGS = ["lantern", "map", "kettle", "ladder", "brass key", "fiddle", "basket", "rope", "umbrella", "hammer",
          "blue vase", "wooden box", "letter", "pocket watch", "compass", "woollen scarf", "whistle", "jar of honey",
          "silver spoon"]
GOODS = ["apple", "pear", "egg", "candle", "nail", "button", "loaf", "onion", "pencil", "cup", "needle", "lemon"]
PLURALS = {"loaf": "loaves"}
WEATHER = ["clear", "cloudy", "windy", "foggy", "rainy", "stormy", "frosty", "warm", "hot and still", "snowy"]
SEASONS = {"January": "cold", "March": "windy", "May": "green", "July": "bright", "September": "golden",
           "October": "wet", "December": "dark"}
DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
MOODS = ["happy", "tired", "curious", "worried", "proud", "patient", "cross", "hopeful", "surprised", "quiet"]
NUMBERS = ("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
           "seventeen eighteen nineteen twenty").split()
TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
FILLINGS = {"apples": "apple", "plums": "plum", "leeks": "leek", "mushrooms": "mushroom", "cherries": "cherry",
            "potatoes": "potato", "beans": "bean", "pears": "pear", "onions": "onion", "walnuts": "walnut"}
DISHES = ["pie", "soup", "cake", "stew", "pudding", "tart", "dumplings"]
SPICES = ["cinnamon", "pepper", "thyme", "nutmeg", "salt", "ginger", "parsley"]
NOUNS = ("river mountain cloud garden window mirror candle shadow winter engine harbour pocket secret thunder feather "
         "question neighbour machine island sparrow history silence kitchen voyage promise copper journey whisper "
         "library daughter stranger morning").split()
ADJECTIVES = ("quiet golden broken distant gentle heavy narrow famous empty clever ancient bitter silver lonely sudden "
              "careful purple wooden honest crooked humble restless simple frozen").split()
VERBS = ("follows remembers carries forgets repairs answers frightens borrows measures paints surrounds admires hides "
         "crosses protects invents teaches mistakes touches watches").split()
ADVERBS = ("slowly always nearly twice softly rarely by-and-by at-night without-a-word in-spring for-nothing "
           "long-before-dawn").split()


def number_word(value):
    if value <= 20:
        return NUMBERS[value]
    if value > 99:
        return str(value)
    tens, rest = divmod(value, 10)
    return TENS[tens - 2] + (f"-{NUMBERS[rest]}" if rest else "")


def counted(value, noun):
    return f"{number_word(value)} {noun if value == 1 else PLURALS.get(noun, noun + 's')}"


def with_article(noun):
    return ("an " if noun[0] in "aeiou" else "a ") + noun


def capital(text):
    return text[0].upper() + text[1:]


def story(chance):
    hero, friend = chance.some(PEOPLE, 2)
    thing, place, elsewhere = chance.one(THINGS), *chance.some(PLACES, 2)
    opening = chance.one([
        f"One {chance.one(WEATHER)} {chance.one(DAYS)} {hero.name} the {hero.trade} could not find "
        f"{hero.their} {thing}.",
        f"Long before the railway came to {hero.town}, {hero.name} the {hero.trade} lost {with_article(thing)}.",
        f"{hero.name} of {hero.town} woke up {chance.one(MOODS)}, because {hero.their} {thing} was gone.",
    ])
    search = chance.one([
        f"{capital(hero.they)} looked behind {place}, under the table and even in the boots of {friend.name} the "
        f"{friend.trade}.",
        f"{capital(hero.they)} walked all the way from {place} to {elsewhere} and asked everybody on the road.",
        f"First {hero.they} searched {place}. Then {hero.they} searched {elsewhere}. There was nothing but dust.",
    ])
    talk = chance.one([
        f'"Have you seen it?" {hero.they} asked. "No," said {friend.name}, "but I saw {chance.one(PEOPLE).name} near '
        f'{elsewhere} this morning."',
        f'"When did you have it last?" asked {friend.name}, who lives in {friend.town} with {friend.pet}.',
        f'"Things that are lost want to be found," said {friend.name} the {friend.trade}. "Let us go together."',
    ])
    turn = chance.one([
        f"They waited until {chance.one(['noon', 'evening', 'the bells rang', 'the rain stopped'])}.",
        f"It took them {counted(chance.between(2, 12), 'hour')}, and both were {chance.one(MOODS)}.",
        f"A {chance.one(['crow', 'fox', 'child', 'stranger'])} watched them and said nothing.",
    ])
    ending = chance.one([
        f"In the end {hero.name} found the {thing} at {elsewhere}, exactly where {hero.they} had left it.",
        f"At last {friend.name} laughed: {hero.pet.split(' called ')[-1]} had been sitting on the {thing} all day.",
        f"The {thing} never came back, but {friend.name} gave {hero.them} a better one.",
        f"Somebody had carried the {thing} to {elsewhere}, and nobody ever learned who.",
    ])
    return " ".join([opening, search, talk, turn, ending])


def letter(chance):
    writer, reader, third = chance.some(PEOPLE, 3)
    month = chance.one(list(SEASONS))
    price, many = chance.between(2, 9), chance.between(2, 9)
    noun = chance.one(GOODS)
    lines = [
        f"{writer.town}, {chance.between(1, 28)} {month} {chance.between(1871, 1899)}",
        f"Dear {reader.name},",
        f"it is a {SEASONS[month]} {month} here in {writer.town}, and I hope it is better in {reader.town}. "
        + chance.one([
            f"Please send me {counted(many, noun)} as soon as you can. At {number_word(price)} pence each that makes "
            f"{number_word(price * many)} pence, which {third.name} will bring you.",
            f"Yesterday {third.name} the {third.trade} came to see me and stayed for {counted(many, 'hour')}. "
            f"We spoke of you and of {reader.pet}.",
            f"I have mended your {chance.one(THINGS)}. It needed {counted(many, 'nail')} and a little patience.",
            f"The {chance.one(THINGS)} that you lent me is broken, and I am sorry. {third.name} says it can be "
            "repaired.",
        ]),
        chance.one([
            f"Tell me how {reader.pet.split(' called ')[-1]} is, and whether the road to {third.town} is open again.",
            f"Do not work too hard. A {reader.trade} needs sleep like everybody else.",
            f"Come and visit before {chance.one(list(SEASONS))}, when the days are still long enough.",
        ]),
        f"Your friend {writer.name}, {writer.trade}",
    ]
    return "\n".join(lines)


def dialogue(chance):
    first, second = chance.some(PEOPLE, 2)
    place, thing = chance.one(PLACES), chance.one(THINGS)
    hour = chance.between(1, 11)
    exchanges = [
        (f"Good morning, {second.name}. How is {second.pet.split(' called ')[-1]}?",
         f"Hungry as ever, thank you. And how is the work of a {first.trade}?"),
        (f"Where are you going with that {thing}?",
         f"To {place}. I promised to be there at {number_word(hour)} o'clock."),
        (f"Is it far from {second.town} to {first.town}?",
         f"About {counted(chance.between(2, 20), 'mile')}, and twice as many when it is {chance.one(WEATHER)}."),
        ("Do you think it will rain?", f"It was {chance.one(WEATHER)} on {chance.one(DAYS)}, so who can tell?"),
        (f"They say you are the best {second.trade} in {second.town}.",
         f"I am the only {second.trade} in {second.town}."),
        (f"What does a {thing} cost these days?",
         f"{capital(counted(chance.between(3, 40), 'shilling'))}, and it was half of that last year."),
        ("You look " + chance.one(MOODS) + " today.", f"I was at {place} until {number_word(hour)} in the night."),
    ]
    lines = [f"At {place}."]
    for question, answer in chance.some(exchanges, chance.between(2, 4)):
        lines += [f"{first.name.upper()}: {question}", f"{second.name.upper()}: {answer}"]
    return "\n".join(lines)


def recipe(chance):
    cook = chance.one(PEOPLE)
    fillings, spice = chance.some(FILLINGS, 2), chance.one(SPICES)
    dish, minutes = chance.one(DISHES), chance.between(2, 12) * 5
    steps = [
        f"Wash the {fillings[0]} and cut them into {chance.one(['slices', 'cubes', 'halves'])}.",
        f"Melt {counted(chance.between(2, 6), 'spoon')} of butter and add the {fillings[1]}.",
        f"Stir in {counted(chance.between(1, 4), 'cup')} of {chance.one(['flour', 'milk', 'cream', 'water'])} and a "
        f"little {spice}.",
        f"Let it {'boil' if dish in ('soup', 'stew', 'dumplings') else 'bake'} for {minutes} minutes.",
        f"Serve it {chance.one(['hot', 'warm', 'cold', 'with bread', 'on Sunday'])} to "
        f"{number_word(chance.between(2, 8))} people.",
    ]
    title = f"{cook.name}'s {FILLINGS[fillings[0]]} {dish} with {spice}"
    return "\n".join([title] + [f"{i}. {step}" for i, step in enumerate(steps, 1)])


def sums(chance):
    lines = [f"{chance.one(PEOPLE).name}'s exercise book, page {chance.between(1, 60)}"]
    for _ in range(chance.between(3, 7)):
        a, b = chance.between(1, 60), chance.between(1, 30)
        lines.append(chance.one([
            f"{a} + {b} = {a + b}",
            f"{a + b} - {b} = {a}",
            f"{a % 12 + 1} x {b % 12 + 1} = {(a % 12 + 1) * (b % 12 + 1)}",
            f"{capital(number_word(b))} and one is {number_word(b + 1)}.",
            f"Half of {2 * b} is {b}.",
        ]))
    return "\n".join(lines)


def purchase(chance):
    buyer = chance.one(PEOPLE)
    many, price = chance.between(2, 9), chance.between(2, 9)
    noun, total = chance.one(GOODS), many * price
    paid = total + chance.between(0, 9)
    change = f"gets {counted(paid - total, 'coin')} back" if paid > total else "gets nothing back"
    return (f"{buyer.name} the {buyer.trade} buys {counted(many, noun)} from Lorenz. One costs {number_word(price)} "
            f"coins, so together they cost {number_word(total)}. {capital(buyer.they)} pays {number_word(paid)} and "
            f"{change}.")


def log(chance):
    day, keeper = chance.below(7), chance.one(PEOPLE[5:6] + PEOPLE[8:9] + PEOPLE[1:2])
    lines = [f"Log of {keeper.name}, {keeper.trade}, {keeper.town}"]
    for i in range(chance.between(3, 6)):
        lines.append(f"{DAYS[(day + i) % 7]}: {chance.one(WEATHER)}, {chance.between(-4, 29)} degrees, wind "
                     f"{chance.one(['north', 'east', 'south', 'west'])} {chance.between(1, 9)}, "
                     f"{counted(chance.between(0, 14), 'ship')}.")
    return "\n".join(lines)


def portrait(chance):
    person, other = chance.some(PEOPLE, 2)
    return (f"{person.name} is the {person.trade} of {person.town}. {capital(person.they)} lives near "
            f"{chance.one(PLACES)} with {person.pet}. Every {chance.one(DAYS)} {person.they} meets {other.name}, the "
            f"{other.trade} of {other.town}, and they {chance.one(['play cards', 'drink tea', 'mend nets', 'argue'])} "
            f"until {number_word(chance.between(6, 11))} o'clock. {capital(person.they)} is often "
            f"{chance.one(MOODS)}, but never before breakfast.")


def saying(chance):
    """Nothing but grammar: which words meet is pure chance."""
    def noun():
        return chance.one(["the ", "every ", "no "]) + chance.one(ADJECTIVES) + " " + chance.one(NOUNS)

    sentences = []
    for _ in range(chance.between(2, 5)):
        adverb = chance.one(ADVERBS).replace("-", " ")
        sentences.append(capital(f"{noun()} {chance.one(VERBS)} {noun()} {adverb}."))
    return f"{chance.one(PEOPLE).name} says: " + " ".join(sentences)


def corpus():
    chance = Chance(SEED)
    kinds = [story, story, story, letter, letter, dialogue, dialogue, recipe, sums, purchase, log, portrait,
             saying, saying, saying, saying]
    pieces, size = [], 0
    while size < BYTES:
        pieces.append(chance.one(kinds)(chance) + "\n\n")
        size += len(pieces[-1])
    return "".join(pieces).encode("ascii")


def main(arguments):
    if "--help" in arguments or any(a.startswith("-") and a != "--check" for a in arguments):
        print(__doc__.strip())
        return 0 if "--help" in arguments else 2
    names = [argument for argument in arguments if argument != "--check"]
    file = pathlib.Path(names[0]) if names else pathlib.Path(__file__).resolve().parent / "corpus.txt"
    if "--check" not in arguments:
        file.write_bytes(corpus())
        return 0
    if file.is_file() and file.read_bytes() == corpus():
        return 0
    print(f"{file} is not what {pathlib.Path(__file__).name} writes (hint: run it without --check)", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
