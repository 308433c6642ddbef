"""How Spanish declines to answer; what its sentences about the sources look like is in `en`."""

from __future__ import annotations

import re

from ragauge.scoring.refusals import LanguagePatterns, all_of, any_of, at_words

_W = r"(?:[\w'-]{1,40},? )"  # a word between others
_SOURCE = (
    r"(?:contexto|documentos?|textos?|pasajes?|artículos?|informes?|manual|contrato|fuentes?|"
    r"extractos?|documentación|información|datos|base de conocimientos?|páginas?|tabla|guía|"
    r"folleto|"
    r"párrafo|archivos?)"
)
_INFO = (
    r"(?:información|informaciones|detalles?|datos?|mención|menciones|respuestas?|indicación|"
    r"indicaciones|documentos?|resultados?|referencias?|acceso|conocimiento|elementos)"
)
_HOLD = (
    r"(?:contien|menciona|indica|especific|proporciona|permit|dice|habla|trata|precisa|incluy|da\b|"
    r"dan\b|aborda|ofrec|señala|figura|aparec|describ|explica|responde|aclara)\w{0,6}"
)

PATTERNS = LanguagePatterns(
    replaces=(),
    stems=(
        "no ",
        "ningun",
        "ningún",
        "desconocid",
        "n/d",
        "n.d",
        "n/a",
        "imposible",
        "insuficiente",
        "ni idea",
        "sin ",
        "lo siento",
        "lamento",
    ),
    whole=all_of(
        r"n ?/ ?[da]|n\.d|desconocid[oa]|ni idea|sin respuesta|no (?:especificad[oa]|disponible|"
        r"mencionad[oa]|indicad[oa]|consta|encontrad[oa])",
        r"(?:no hay|sin) (?:información|datos|respuesta)(?: disponibles?)?|no se encontr(?:ó|aron) "
        r"(?:información|datos|resultados)",
    ),
    declines=at_words(
        r"\b(?:yo )?no (?:lo )?sé\b(?! (?:por qué|cómo))|\bdesconozco\b|\bni idea\b",
        r"\bno (?:puedo|podría|podemos|me es posible|nos es posible|soy capaz)\b",
        r"\bno (?:encuentro|encontré|he encontrado|hemos encontrado|veo|conozco|he podido|pude|"
        r"dispongo|"
        r"poseo)\b",
        rf"\bno tengo (?:[\w'-]{{1,40}} ){{0,3}}?{_INFO}",
        r"\bno se puede (?:[\w'-]{1,40} ){0,2}?(?:responder|determinar|calcular|saber|deducir)\b|"
        r"\bno es posible (?:[\w'-]{1,40} ){0,2}?(?:responder|determinar|calcular|saber)\b|"
        r"^imposible (?:responder|determinar|saber)",
        r"\b(?:insuficientes?|no (?:es|son) suficientes?)\b",
        r"\bcomo (?:ia|inteligencia artificial|modelo de lenguaje|asistente)\b",
    ),
    lacks=at_words(
        rf"\b{_SOURCE}\b[^;]{{0,80}}?\bno (?:lo |la |los |las |se )?{_HOLD}",
        rf"\b(?:ninguno|ninguna) de (?:los|las) (?:[\w'-]{{1,40}} ){{0,2}}?{_SOURCE}\b|"
        rf"\bning(?:ún|una) {_SOURCE}\b",
        rf"\bno (?:hay|existe|existen) (?:[\w'-]{{1,40}} ){{0,3}}?{_INFO}",
        r"\bno (?:se|está|están|ha sido|han sido) (?:[\w'-]{1,40} )?(?:menciona|indica|especifica|"
        r"precisa|detalla|explica)\w{0,4}\b|\bno (?:figura|figuran|aparece|aparecen|consta)\b",
        r"\b(?:información|respuesta|datos?|eso|esto|detalles?)\b[^;]{0,40}? no (?:está|están) "
        r"(?:disponibles?|incluid|presente)",
        rf"^(?:pero |y )?no (?:lo |la |se )?{_HOLD}",
    ),
    unless=any_of(r"\b(?:si|cuando)\b"),
    opens=any_of(
        r"^(?:lo siento|lo lamento|disculpe|perdón|gracias)\b.{0,30}$|^(?:lamentablemente|"
        r"desafortunadamente|por desgracia)\b.{0,30}$",
        r"^para (?:calcular|responder|determinar)\b|\b(?:haría|harían) falta\b",
        rf"^(?:el|la|los|las|este|esta|estos|estas) (?:[\w'-]{{1,40}} )?{_SOURCE} (?:habla|"
        rf"menciona|"
        r"trata|describe|aborda)\w{0,3} (?!que\b)",
    ),
    asides=any_of(
        r"\b(?:póngase|contacte|puede consultar|puedes consultar|consulte|por favor|si (?:tiene|"
        r"tienes|"
        r"usted|me|necesita)|puedo ayudar\w{0,3}|le recomiendo|te recomiendo)\b|\?$",
    ),
    turns=any_of(r"(?:sin embargo|pero|no obstante|aunque|según|de acuerdo con)\b"),
    concludes=any_of(
        r"(?:y )?(?:por lo tanto|por tanto|así que|por ello|por eso|sin|como|dado que|ya que|en "
        r"consecuencia)\b"
    ),
    results=any_of(r"(?:y )?(?:por lo tanto|por tanto|en consecuencia)\b"),
    supposes=any_of(r"(?:si|por ejemplo|supongamos)\b"),
    answers=any_of(r"\b(?:probablemente|seguramente|creo que)\b|\bla respuesta es\b"),
    splits=re.compile(r",? (?:pero|sin embargo|no obstante|aunque)\b | [–—] "),
    concedes=re.compile(r"^(?:aunque|si bien|mientras que) [^,]{1,160}, "),
)
