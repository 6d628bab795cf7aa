#include <string>

// The words of a text in the opposite order, one space between them.
std::string reverse_words(const std::string& text) {
    std::string made, word;
    for (char letter : text + " ") {
        if (letter != ' ') {
            word += letter;
        } else if (!word.empty()) {
            made = made.empty() ? word : word + " " + made;
            word.clear();
        }
    }
    return made;
}
