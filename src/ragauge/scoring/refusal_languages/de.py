"""How German declines to answer; what its sentences about the sources look like is in `en`."""

from __future__ import annotations

import re

from ragauge.scoring.refusals import LanguagePatterns, all_of, any_of, at_words

_W = r"(?:[\w'-]{1,40},? )"  # a word between others
_SOURCE = (
    r"(?:kontext|dokument|text|abschnitt|artikel|bericht|handbuch|vertrag|unterlage|quelle|auszug|"
    r"passage|material|wissensdatenbank|dokumentation|anleitung|tabelle|information|datei|seite|"
    r"prospekt|absatz|daten)\w{0,6}"
)
_INFO = (
    r"(?:information|angabe|auskunft|daten|hinweis auf|hinweise auf|antwort|aussage|erwähnung|"
    r"einzelheit|detail|beleg)\w{0,4}"
)
_WRITTEN = (
    r"(?:erwähnt|genannt|angegeben|aufgeführt|beschrieben|spezifiziert|enthalten|dokumentiert|"
    r"behandelt|erläutert|zu finden|gemacht|definiert|ersichtlich)"
)

PATTERNS = LanguagePatterns(
    replaces=(("weiss", "weiß"), ("laesst", "lässt")),
    stems=(
        "nicht",
        "kein",
        "unbekannt",
        "unklar",
        "k. a",
        "k.a",
        "unmöglich",
        "leider",
        "tut mir leid",
        "entschuldig",
        "reichen",
        "fehl",
    ),
    whole=all_of(
        r"unbekannt|unklar|keine (?:angaben?|antwort|ahnung|auskunft)|k\. ?a|nicht bekannt|"
        r"nicht (?:angegeben|verfügbar|spezifiziert|vorhanden|genannt|erwähnt)",
        rf"nicht im {_W}{{0,2}}{_SOURCE} (?:enthalten|angegeben|erwähnt)",
        r"keine (?:relevanten |passenden |weiteren )?(?:informationen|daten|treffer|ergebnisse)"
        r"(?: gefunden| vorhanden| verfügbar)?",
    ),
    declines=at_words(
        r"\b(?:weiß ich|ich weiß)(?: (?:es|das|leider|dazu|darüber|dies)){0,2} nicht\b",
        r"\bkann ich (?:[\w'-]{1,40} ){0,8}?(?:nicht|nichts|keine)\b|\bich kann "
        r"(?:[\w'-]{1,40} ){0,9}?"
        r"(?:nicht|nichts|keine)\b|\bich konnte (?:[\w'-]{1,40} ){0,8}?(?:nicht|nichts|keine)\b|"
        r"\bkonnte ich (?:[\w'-]{1,40} ){0,8}?(?:nicht|nichts|keine)\b",
        rf"\b(?:ich habe|habe ich|mir liegen|uns liegen|wir haben) (?:[\w'-]{{1,40}} ){{0,3}}?"
        rf"(?:keine[nr]?|nicht genügend|nicht genug) (?:[\w'-]{{1,40}} ){{0,2}}?(?:{_INFO}|zugriff|"
        r"zugang|ahnung|kenntnis)",
        r"\b(?:finde ich|ich finde) (?:[\w'-]{1,40} ){0,4}?(?:nicht|nichts|keine)\b",
        r"\b(?:lässt|lassen) sich (?:[\w'-]{1,40} ){0,8}?nicht "
        r"(?:[\w'-]{1,40} ){0,2}?(?:beantworten|"
        r"ableiten|bestimmen|ermitteln|sagen|entnehmen|feststellen|berechnen|klären)",
        r"\bkann (?:[\w'-]{1,40} ){0,8}?nicht (?:[\w'-]{1,40} ){0,2}?(?:beantwortet|bestimmt|"
        r"ermittelt|"
        r"berechnet|entnommen|festgestellt|geklärt) werden",
        r"\b(?:nicht möglich|unmöglich),? (?:[\w'-]{1,40},? ){0,8}?(?:zu bestimmen|zu "
        r"beantworten|zu "
        r"sagen|zu ermitteln|zu berechnen|festzustellen)",
        r"\bkeine (?:aussage|antwort)(?: [\w'-]{1,40}){0,3} möglich\b",
        r"\b(?:reicht|reichen) (?:[\w'-]{1,40} ){0,3}?nicht aus\b|\bnicht (?:genügend|genug|"
        r"ausreichend) "
        r"(?:informationen|daten|angaben)|\bunzureichende",
        r"\bals (?:ki|sprachmodell|künstliche)\b",
    ),
    lacks=at_words(
        rf"\b{_SOURCE}\b[^;]{{0,80}}?\b(?:enthält|enthalten|nennt|nennen|macht|machen|gibt|geben|"
        rf"bietet|liefert|liefern|hat|haben)\b[^;]{{0,60}}?\bkeine[nrs]? "
        rf"(?:[\w'-]{{1,40}} ){{0,2}}?"
        rf"(?:{_INFO}|datum|namen|zahl|wert|preis)",
        rf"\b{_SOURCE}\b[^;]{{0,80}}?\b(?:erwähnt|nennt|enthält|enthalten|erwähnen|nennen|"
        rf"beschreibt|"
        r"behandelt|sagt|präzisiert|klärt)\b[^;]{0,60}?\b(?:nicht|nichts)\b",
        rf"\bkeine[srmn]? der {_W}{{0,2}}?{_SOURCE}",
        rf"\b(?:im|in den|in der|in diesem|in dem)"
        rf" {_W}{{0,2}}?{_SOURCE}\b[^;]{{0,60}}?\b(?:nicht|nichts|"
        rf"keine)\b(?: [\w'-]{{1,40}}){{0,2}}? ?(?:{_WRITTEN}|{_INFO})?",
        r"\bgeht (?:[\w'-]{1,40} ){0,8}?nicht hervor\b|\bsteht (?:[\w'-]{1,40} ){0,4}?(?:nicht|"
        r"nichts)\b",
        rf"\b(?:es gibt|gibt es|es liegen|liegen|es werden|werden|sind) "
        rf"(?:[\w'-]{{1,40}} ){{0,3}}?keine "
        rf"(?:[\w'-]{{1,40}} ){{0,2}}?{_INFO}",
        rf"\b(?:ist|sind|wird|werden|wurde|wurden) (?:[\w'-]{{1,40}} ){{0,4}}?nicht (?:näher |"
        rf"genauer |"
        rf"explizit |direkt |ausdrücklich )?(?:erwähnt|genannt|angegeben|aufgeführt|spezifiziert|"
        rf"dokumentiert|ersichtlich)\b|\bnicht (?:im|in den|in der) {_W}{{0,2}}?{_SOURCE}",
        rf"\bgibt (?:[\w'-]{{1,40}} ){{0,4}}?keine {_INFO}",
        rf"^(?:aber |jedoch |allerdings )kein\w{{0,2}} (?:datum|name\w{{0,1}}|zahl|preis|{_INFO})",
        r"^(?:aber |jedoch |und )?(?:er |sie |es )?nennt (?:aber |jedoch |allerdings )?kein",
        r"\bsagt (?:[\w'-]{1,40} ){0,2}?nichts\b",
    ),
    unless=any_of(r"\b(?:wenn|falls|sofern|sobald)\b"),
    opens=any_of(
        r"^(?:es )?(?:tut mir leid|tut uns leid)|^(?:leider|entschuldig\w{0,9}|bedaure|danke)"
        r"\b.{0,40}$",
        r"^um (?:[\w'-]{1,40} ){0,6}?zu (?:berechnen|bestimmen|beantworten|ermitteln)\b",
        r"\b(?:bräuchte|benötigte|müsste|wäre|wären) (?:man|ich|wir)?\b",
        rf"^(?:der|die|das|dieser|diese|dieses) (?:[\w'-]{{1,40}} )?{_SOURCE} (?:erwähnt|behandelt|"
        r"beschreibt|handelt von|beziehen sich|bezieht sich) (?!dass\b)",
    ),
    asides=any_of(
        r"\b(?:bitte|wenden sie|wende dich|fragen sie|kontaktieren|können sie|sie können|wenn "
        r"sie|falls "
        r"sie|gerne?|empfehle|schauen sie|weitere informationen)\b|\?$",
        rf"^(?:er|sie|es|der|die|das) (?:[\w'-]{{1,40}} )?(?:{_SOURCE} )?(?:behandelt|beschreibt|"
        r"handelt|erwähnt|enthält) (?:nur|lediglich|ausschließlich)\b",
    ),
    turns=any_of(r"(?:aber|jedoch|allerdings|dennoch|trotzdem|obwohl|laut|gemäß)\b"),
    concludes=any_of(
        r"(?:und )?(?:daher|deshalb|somit|folglich|also|da|weil|deswegen|ohne|insgesamt)\b"
    ),
    results=any_of(r"(?:und )?(?:daher|deshalb|somit|folglich|insgesamt)\b"),
    supposes=any_of(r"(?:wenn|falls|angenommen|zum beispiel)\b"),
    answers=any_of(r"\b(?:wahrscheinlich|vermutlich|ich glaube|ich denke)\b|\bdie antwort ist\b"),
    splits=re.compile(r",? (?:aber|jedoch|allerdings|doch)\b | [–—] "),
    concedes=re.compile(r"^(?:obwohl|während|auch wenn|zwar) [^,]{1,160}, "),
)
