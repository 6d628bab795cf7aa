"""How often each word occurs in a text."""
# fmt: off
# ruff: noqa: ERA001, I001

import string

# outpace: alternatives
# outpace: option strip-each-word
def words_of(text):
    words = []
    for token in text.split():
        word = token.strip(string.punctuation).lower()
        if word:
            words.append(word)
    return words
# outpace: option lower-first
#~ def words_of(text):
#~     marks = string.punctuation
#~     return [word for token in text.lower().split() if (word := token.strip(marks))]
# outpace: option pattern
#~ import re
#~ MARKS = re.escape(string.punctuation)
#~ WORD = re.compile(rf"[^\s{MARKS}](?:\S*[^\s{MARKS}])?")
#~ def words_of(text):
#~     return WORD.findall(text.lower())
# outpace: end alternatives


# outpace: alternatives
# outpace: option dict
def count(words):
    counts = {}
    for word in words:
        counts[word] = counts.get(word, 0) + 1
    return counts
# outpace: option counter
#~ from collections import Counter
#~ def count(words):
#~     return dict(Counter(words))
# outpace: end alternatives


# outpace: alternatives
# outpace: option ignore-before
def count_words(text, ignore):
    """Counts words in lower case, without marks at their ends, apart from those to ignore (in lower case)."""
    ignored = set(ignore)
    return count([word for word in words_of(text) if word not in ignored])
# outpace: option ignore-after
#~ def count_words(text, ignore):
#~     counts = count(words_of(text))
#~     for word in ignore:
#~         counts.pop(word, None)
#~     return counts
# outpace: end alternatives
