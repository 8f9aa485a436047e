"""The line that makes Debian's non-free component known to apt, from what apt knows already."""

import unittest

from bench.non_free import deb822_sources, one_line_sources, wanted_line

DEB822 = """\
Types: deb
# a comment
URIs: http://deb.debian.org/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://deb.debian.org/debian-security
Suites: bookworm-security
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
"""
ONE_LINE = """\
# deb cdrom:[Debian]/ bookworm main
deb http://ftp.example.org/debian/ bookworm main contrib # mirror
deb-src http://ftp.example.org/debian/ bookworm main
deb [arch=amd64 signed-by=/etc/apt/keyrings/other.gpg] https://packages.example.org/apt stable main
"""


class Line(unittest.TestCase):
    def test_takes_over_archive_and_key(self):
        self.assertEqual(wanted_line(list(deb822_sources(DEB822)), "bookworm"),
                         "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian "
                         "bookworm non-free\n")

    def test_no_key_where_main_has_none_and_no_strangers_archive(self):
        self.assertEqual(wanted_line(list(one_line_sources(ONE_LINE)), "bookworm"),
                         "deb http://ftp.example.org/debian/ bookworm non-free\n")

    def test_nothing_where_it_is_known(self):
        for text, read in ((DEB822.replace("main", "main non-free non-free-firmware"), deb822_sources),
                           (ONE_LINE.replace("contrib", "non-free"), one_line_sources)):
            self.assertEqual(wanted_line(list(read(text)), "bookworm"), "")

    def test_none_without_debian_or_with_a_disabled_entry_alone(self):
        self.assertIsNone(wanted_line([], "bookworm"))
        disabled = DEB822.replace("Types: deb", "Enabled: no\nTypes: deb")
        self.assertIsNone(wanted_line(list(deb822_sources(disabled)), "bookworm"))

    def test_a_key_within_the_file_cannot_be_repeated_in_one_line(self):
        within = DEB822.replace("Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg",
                                "Signed-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n mQINBF")
        self.assertIsNone(wanted_line(list(deb822_sources(within)), "bookworm"))


if __name__ == "__main__":
    unittest.main()
