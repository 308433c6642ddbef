"""How French declines to answer; what its sentences about the sources look like is in `en`."""

from __future__ import annotations

import re

from ragauge.scoring.refusals import LanguagePatterns, all_of, any_of, at_words

_W = r"(?:[\w'-]{1,40},? )"  # a word between others
_SOURCE = (
    r"(?:contexte|documents?|textes?|passages?|articles?|rapports?|manuel|contrat|sources?|"
    r"extraits?|"
    r"documentation|informations?|données|base de connaissances|pages?|tableau|guide|brochure|"
    r"paragraphe|fichiers?)"
)
_INFO = (
    r"(?:informations?|renseignements?|détails?|données?|mention|précisions?|éléments?|réponse|"
    r"indications?|documents?|résultats?)"
)
_HOLD = (
    r"(?:contien|mentionn|précis|indiqu|fourni|permet|dit|disent|parl|trait|donn|abord|spécifi|"
    r"évoqu|couvr|comport|figur|renseign|répond|expliqu|décri)\w{0,6}"
)

PATTERNS = LanguagePatterns(
    replaces=(),
    stems=(
        "pas",
        "aucun",
        "rien",
        "inconnu",
        "non ",
        "n/d",
        "n.d",
        "n/a",
        "impossible",
        "insuffisant",
        "ne suffi",
        "ni l'un",
        "désolé",
        "malheureusement",
    ),
    whole=all_of(
        r"n ?/ ?[da]|n\.d|inconnue?|aucune idée|pas de réponse|sans réponse|non (?:précisée?|"
        r"spécifiée?|disponible|mentionnée?|communiquée?|indiquée?|renseignée?)",
        r"aucune (?:information|donnée|réponse)(?: pertinente)?(?: (?:disponible|trouvée|fournie)"
        r")?",
    ),
    declines=at_words(
        r"\bje ne (?:le )?sais pas\b|\bje n'en sais rien\b|\bje l'ignore\b|\baucune idée\b",
        r"\bje ne (?:peux|puis|pourrais|suis) (?:malheureusement )?pas (?!sûr|certain)",
        r"\bje ne (?:trouve|vois|dispose|connais|possède) (?:malheureusement )?(?:pas|rien|aucun)",
        rf"\bje n'ai (?:malheureusement )?(?:pas|rien|aucune?)"
        rf" ?(?:[\w'-]{{1,40}} ){{0,4}}?(?:{_INFO}|"
        r"trouvé|accès|pu|assez|connaissance|réponse|d'éléments|d'information)",
        r"\bil (?:m'|nous )?est impossible\b|\bil n'est pas possible de\b|^impossible d",
        r"\bne (?:peut|peuvent) (?:donc )?(?:pas )?être (?:déterminée?|tranchée?|répondue?|"
        r"calculée?|"
        r"établie?)",
        r"\bne peut (?:pas|donc pas) être (?:[\w'-]{1,40} ){0,2}?(?:déterminée?|tranchée?|"
        r"calculée?)",
        r"\b(?:insuffisante?s?|ne suffi(?:t|sent) pas)\b(?=.{0,60}\brépon|\.?$)",
        r"\ben tant qu'(?:ia|intelligence|assistant|modèle)",
    ),
    lacks=at_words(
        rf"\b{_SOURCE}\b[^;]{{0,80}}?\b(?:ne |n')(?:[\w']{{1,5}} )?{_HOLD} "
        rf"(?:[\w'-]{{1,40}} ){{0,2}}?"
        r"(?:pas|aucune?|rien|ni)\b",
        rf"\b{_SOURCE}\b[^;]{{0,80}}?\bne (?:le |la |les )?{_HOLD}(?: [\w'-]{{1,40}}){{0,3}}? "
        r"(?:pas|aucune?|rien|ni)\b",
        rf"\baucun(?:e)? (?:des? (?:[\w'-]{{1,40}} ){{0,2}}?)?{_SOURCE}\b[^;]{{0,60}}?\bne {_HOLD}",
        rf"\bil n'y a (?:pas|aucune?)(?: d'| de | )(?:[\w'-]{{1,40}} ){{0,2}}?{_INFO}",
        r"\b(?:n'est|ne sont|n'était|n'a|n'ont) (?:[\w'-]{1,40} ){0,2}?pas "
        r"(?:été )?(?:explicitement |"
        r"directement )?(?:mentionnée?s?|précisée?s?|indiquée?s?|spécifiée?s?|fournie?s?|"
        r"communiquée?s?)\b",
        r"\b(?:informations?|données?|réponse|cela|ceci|détails?)\b[^;]{0,40}? (?:n'est|ne sont) "
        r"pas "
        r"(?:disponible|donnée|incluse|connue|présente)",
        r"\bne (?:figure|figurent|se trouve|se trouvent|apparaît|apparaissent) pas\b",
        rf"^(?:mais |et )?(?:il |elle |ils |elles )?(?:ne |n'){_HOLD} (?:pas|aucune?|rien)\b",
    ),
    unless=any_of(r"\b(?:si|lorsque|quand)\b"),
    opens=any_of(
        r"^(?:je suis )?(?:désolée?|navrée?)\b.{0,30}$|^(?:malheureusement|pardon|merci)\b.{0,30}$",
        r"^pour (?:calculer|répondre|déterminer)\b|\bil faudrait\b",
        rf"^(?:le|la|les|l'|ce|ces|cet) ?(?:[\w'-]{{1,40}} )?{_SOURCE} (?:parle|mentionne|traite|"
        r"décrit|évoque|aborde)\w{0,4} (?!que\b|qu')",
    ),
    asides=any_of(
        r"\b(?:veuillez|contacter|contactez|vous pouvez|consulte[rz]|si vous|n'hésitez|je vous "
        r"(?:invite|conseille|recommande)|adressez|je peux vous aider)\b|\?$",
    ),
    turns=any_of(r"(?:cependant|mais|toutefois|néanmoins|pourtant|selon|d'après|bien que)\b"),
    concludes=any_of(
        r"(?:et )?(?:par conséquent|donc|ainsi|sans|comme|puisque|de ce fait|en conséquence)\b"
    ),
    results=any_of(r"(?:et )?(?:par conséquent|donc|ainsi|en conséquence)\b"),
    supposes=any_of(r"(?:si|par exemple|supposons)\b"),
    answers=any_of(r"\b(?:probablement|sans doute|je crois|je pense)\b|\bla réponse est\b"),
    splits=re.compile(r",? (?:mais|cependant|toutefois|pourtant)\b | [–—] "),
    concedes=re.compile(r"^(?:bien que|même si|quoique|alors que) [^,]{1,160}, "),
)
