"""Tables of written forms and their English words, for the rules in `spoken_rules`. Data only."""

from __future__ import annotations

DAY_NAMES = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
DAYS = {name[:3].lower(): name for name in DAY_NAMES}
MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August"),
    *("September", "October", "November", "December"),
)
MONEY = {
    "$": ("dollar", "dollars", "cent", "cents"),
    "€": ("euro", "euros", "cent", "cents"),
    "£": ("pound", "pounds", "penny", "pence"),
    "¥": ("yen", "yen", "", ""),
    "₹": ("rupee", "rupees", "paisa", "paise"),
}
MONEY_CODES = {"USD": "$", "EUR": "€", "GBP": "£", "JPY": "¥", "INR": "₹"}
MULTIPLES = {"k": "thousand", "m": "million", "bn": "billion", "b": "billion"}

UNITS: dict[str, tuple[str, str]] = {
    "mph": ("mile per hour", "miles per hour"),
    "km/h": ("kilometer per hour", "kilometers per hour"),
    "kph": ("kilometer per hour", "kilometers per hour"),
    "m/s": ("meter per second", "meters per second"),
    "km": ("kilometer", "kilometers"),
    "cm": ("centimeter", "centimeters"),
    "mm": ("millimeter", "millimeters"),
    "m²": ("square meter", "square meters"),
    "m": ("meter", "meters"),
    "mi": ("mile", "miles"),
    "ft": ("foot", "feet"),
    "yd": ("yard", "yards"),
    "kg": ("kilogram", "kilograms"),
    "mg": ("milligram", "milligrams"),
    "g": ("gram", "grams"),
    "lbs": ("pound", "pounds"),
    "lb": ("pound", "pounds"),
    "oz": ("ounce", "ounces"),
    "ml": ("milliliter", "milliliters"),
    "mL": ("milliliter", "milliliters"),
    "L": ("liter", "liters"),
    "TB": ("terabyte", "terabytes"),
    "GB": ("gigabyte", "gigabytes"),
    "MB": ("megabyte", "megabytes"),
    "KB": ("kilobyte", "kilobytes"),
    "kB": ("kilobyte", "kilobytes"),
    "Gbps": ("gigabit per second", "gigabits per second"),
    "Mbps": ("megabit per second", "megabits per second"),
    "GHz": ("gigahertz", "gigahertz"),
    "MHz": ("megahertz", "megahertz"),
    "kHz": ("kilohertz", "kilohertz"),
    "Hz": ("hertz", "hertz"),
    "kWh": ("kilowatt hour", "kilowatt hours"),
    "kW": ("kilowatt", "kilowatts"),
    "mAh": ("milliamp hour", "milliamp hours"),
    "dB": ("decibel", "decibels"),
    "ms": ("millisecond", "milliseconds"),
    "sec": ("second", "seconds"),
    "min": ("minute", "minutes"),
    "mins": ("minute", "minutes"),
    "hrs": ("hour", "hours"),
    "hr": ("hour", "hours"),
    "%": ("percent", "percent"),
    "°C": ("degree Celsius", "degrees Celsius"),
    "°F": ("degree Fahrenheit", "degrees Fahrenheit"),
    "°": ("degree", "degrees"),
    "℃": ("degree Celsius", "degrees Celsius"),
    "℉": ("degree Fahrenheit", "degrees Fahrenheit"),
}

TITLES = {"Dr": "Doctor", "Mr": "Mister", "Mrs": "Missus", "Ms": "Miz", "Prof": "Professor"}
TITLES |= {"Rev": "Reverend", "Capt": "Captain", "Lt": "Lieutenant", "Sgt": "Sergeant"}
STREETS = {"St": "Street", "Ave": "Avenue", "Blvd": "Boulevard", "Rd": "Road", "Dr": "Drive"}
STREETS |= {"Ln": "Lane", "Hwy": "Highway", "Sq": "Square"}
NO_STREET_NAMES = frozenset(
    (
        "the",
        "in",
        "at",
        "on",
        "of",
        "and",
        "for",
        "near",
        "to",
        "from",
        "by",
        "with",
        "visit",
        "see",
    )
)
SHORT = {
    "e.g": "for example",
    "i.e": "that is",
    "etc": "et cetera",
    "vs": "versus",
    "approx": "approximately",
    "incl": "including",
    "dept": "department",
    "jr": "Junior",
    "sr": "Senior",
    "inc": "Incorporated",
    "ltd": "Limited",
}
FRACTIONS = {"1/2": "one half", "1/3": "one third", "2/3": "two thirds", "1/4": "one quarter"}
FRACTIONS |= {"3/4": "three quarters", "½": "one half", "¼": "one quarter"}
FRACTIONS |= {"¾": "three quarters", "⅓": "one third", "⅔": "two thirds"}
URL_WORDS = {".": "dot", "/": "slash", "-": "dash", "_": "underscore", "@": "at", "+": "plus"}
URL_WORDS |= {"=": "equals", "&": "and", "%": "percent", "~": "tilde", ":": "colon"}
SPELLED = frozenset(("io", "ai", "uk", "de", "eu", "us", "au", "nz", "ch", "nl", "tv", "fm"))
SIGNS = {"&": "and", "+": "plus", "=": "equals", "×": "times", "~": "about"}
