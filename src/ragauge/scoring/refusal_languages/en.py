"""How English declines to answer.

A sentence that says what is *not* so is an answer more often than not: "VAT is not included", "the
plan is not available in Norway". What counts here is a sentence about the sources ("is not
included in the context"), about facts as such ("the figure is not provided"), with a verb that only
texts are the subject of ("does not mention"), or about the speaker ("I cannot find").
"""

from __future__ import annotations

import re

from ragauge.scoring.refusals import LanguagePatterns, all_of, any_of, at_words

_W = r"(?:[\w'/&-]{1,30},? )"  # a word between others
_SOURCE = (
    r"(?:contexts?|documents?|docs?|documentation|texts?|passages?|information|sources?|articles?|"
    r"excerpts?|filings?|materials?|statements?|reports?|evidence|snippets?|sections?|pages?|"
    r"knowledge base|help cent(?:er|re)|manual|guide|exhibits?|records?|files?|tables?|"
    r"transcripts?|notes?|references?|chunks?|corpus|paper|summary|conversation|10-k|10-q|8-k|"
    r"handbook|readme|ticket|wiki|faq|search results|database|paragraph|story|leaflet|log|"
    r"appendix|agreement|contract|data|content|contents|input)"
)
# What only a text does or has done to it, whatever its subject is.
_WRITES = (
    r"(?:mention|specif|stat(?:e|es|ed|ing)\b|sa(?:y|ys|id)\b|disclos|discuss|indicat|address|"
    r"record\b|describ|clarif|elaborat|go into|speak to|touch on|talk about|list\b|listed\b|"
    r"refer|appear (?:in|on|anywhere)|detail|reveal|explain|document|define)"
)
_HOLD = (
    rf"(?:{_WRITES}|contain|provid|includ|giv|offer|cover|hold|report|answer|suppl|tell|identif|"
    r"support any|support an|relate|pertain|break down|deal with|allow me|show|present|help|have "
    r"(?:[\w'-]{1,30} ){0,4}?(?:information|data|details?|answers?|figures?|mention|specifics?))"
)
_WRITTEN = (
    r"(?:mentioned|stated|specified|disclosed|discussed|documented|described|indicated|detailed|"
    r"clarified|addressed|referenced|listed|explained|spelled out|defined|given|known|recorded)"
)
_GIVEN = (
    rf"(?:{_WRITTEN}|provided|included|available|found|present|contained|covered|supplied|reported|"
    r"shown|made|returned|located|offered|answered|identified|retrieved|part of|in)"
)
_INFO = (
    r"(?:information|info|mention|data|details?|references?|answers?|indication|documentation|"
    r"discussion|specifics?|statement|description|explanation|disclosure|figures?|context|"
    r"documents?|passages?|results?|match(?:es)?|guidance|record|article|articles|sources?)"
)
_FACT = (
    r"(?:information|info|data|details?|answers?|figures?|numbers?|names?|values?|dates?|amounts?|"
    r"price|reason|this|that|it|they|those|these|specifics?|results?|identity|location|text|"
    r"percentage|ratio|breakdown|statements?|liabilities|expenditures?|expenses?|revenues?|margin)"
)
_TELL = (
    r"(?:answer|determin|provid|find|found|locat|calculat|tell|say|confirm|verif|identif|access|"
    r"assist|help|giv|comput|ascertain|conclud|infer|establish|comment|respond|offer|see\b|"
    r"retriev|speculat|predict|know|assess|evaluat|compar|draw|complet|explain|describ|list\b|"
    r"deriv|be sure|be certain|extract|deduc|discuss|address|judge|summari[sz]|make)"
)
_CANNOT = (
    r"(?:cannot|could not|(?:am|are|was|were|been) (?:not able|unable)|(?:will|would) (?:not be "
    r"able|"
    r"be unable)|not able|unable)"
)
_IS = r"(?:is|are|was|were|has been|have been|remains?|seems?|appears?)"
_ADVERB = (
    r"(?:directly |explicitly |specifically |clearly |currently |yet |actually |readily |"
    r"\w{1,20}ly )?"
)

PATTERNS = LanguagePatterns(
    replaces=(
        ("can't", "cannot"),
        ("can not", "cannot"),
        ("won't", "will not"),
        ("n't", " not"),
        ("i'm", "i am"),
        ("'re ", " are "),
        ("'d ", " would "),
        ("'ll ", " will "),
        ("'ve ", " have "),
        ("it's", "it is"),
        ("there's", "there is"),
        ("that's", "that is"),
    ),
    stems=(
        "not",
        "n't",
        "no ",
        "unable",
        "unknown",
        "unclear",
        "unansw",
        "impossible",
        "insufficient",
        "missing",
        "none",
        "neither",
        "lack",
        "beyond",
        "outside",
        "sorry",
        "as an ai",
        "decline",
        "would need",
        "'d need",
        "nobody",
        "unsure",
        "uncertain",
        "unspecified",
        "language model",
        "silent",
    ),
    whole=all_of(
        r"n ?/ ?a|n\.a|none|null|unknown|idk|dunno|no idea|nil|not sure|no answer|unanswerable|"
        r"sorry|no comment|undetermined|unclear|unspecified|nothing found|no match(?:es)?|"
        r"no answer (?:found|available|provided|possible)",
        r"(?:the )?(?:(?:answer|information|value|figure|number|name|date|it|this|that) )?"
        r"(?:is |was )?(?:not|un) ?(?:found|known|available|applicable|"
        r"specified|"
        r"mentioned|provided|stated|given|answerable|sure|certain|clear|determined|disclosed|"
        r"listed|documented|answered|present|included)"
        rf"(?: (?:in|by|from) (?:[a-z]{{1,30}} ){{0,4}}{_SOURCE})?",
        r"(?:sorry,? ?(?:but )?)?(?:no|insufficient|not enough) (?:relevant |such |further |"
        r"supporting |matching |specific )?(?:information|info|data|context|details?|"
        r"results?|mention|match(?:es)?|answer|documents?)(?: (?:was|were|is|are))?"
        r"(?: (?:found|available|provided|given|returned|present))?"
        r"(?: (?:in|by|from|for|to|on|about|of) [\w' ]{1,60})?",
        r"i am sorry|(?:i|we) do not know|(?:honestly, )?(?:i have )?no clue",
    ),
    declines=at_words(
        # The speaker does not know, or cannot say.
        r"(?<!did )\b(?:i|the assistant|the model) (?:[\w'-]{1,30} ){0,2}?(?:cannot|could not|"
        r"(?:am|was|will be|would be|have been) "
        r"unable|am not able|was not able|will not be able|would not be able|have not been able|"
        r"must decline|decline to|have to decline|refuse to|will not (?:answer|speculate|comment)"
        r")\b",
        rf"\b(?:we|one|us) (?:[\w'-]{{1,30}} ){{0,2}}?{_CANNOT}(?: to)? "
        rf"(?:[\w'-]{{1,30}} ){{0,2}}?{_TELL}",
        r"\b(?:i|we) (?:[\w'-]{1,30} ){0,2}?(?:do|did) not (?:[\w'-]{1,30} )?(?:know|see|find|"
        r"possess|recall|"
        r"understand|locate|believe there)\b",
        rf"\b(?:i|we) (?:[\w'-]{{1,30}} )?(?:do|did) not "
        rf"(?:[\w'-]{{1,30}} )?have {_W}{{0,6}}?(?:{_INFO}|that|this|"
        r"it|access|knowledge|evidence|ability|capability|idea|insight|visibility|basis|material|"
        r"real-time|records?|statements?|anything|enough|opinions?)\b",
        r"\bi am (?:[\w'-]{1,30} ){0,2}?(?:not sure|unsure|unaware|not aware|not familiar|not "
        r"certain|"
        r"uncertain|not in a position|not allowed|not permitted|not comfortable|not going to|"
        r"not equipped|not programmed|not designed|not qualified|just an ai|only an ai)",
        rf"\b(?:i|we) (?:have|had) {_W}{{0,2}}?(?:no|insufficient|too little|nothing) {_W}{{0,3}}?"
        rf"(?:{_INFO}|idea|clue|knowledge|way|access|evidence|records?|basis|opinion|to go on)\b",
        rf"\b(?:i|we|and|but|search|query|system) (?:[\w'-]{{1,30}} )?(?:found|find|see|located|"
        rf"saw|returned) "
        rf"(?:nothing|no {_W}{{0,2}}?{_INFO})\b|\bdid not return any\b",
        r"\b(?:and|so|but|therefore) (?:therefore )?cannot (?:find|answer|tell|say|see|determine)"
        r"\b",
        rf"\b(?:i|we) (?:would|will) {_W}?(?:need|require) {_W}{{0,2}}?(?:more|additional|further|"
        r"access|the|a|to see|to know|to have)\b|\bi need (?:more|additional|further)\b",
        r"\b(?:beyond|outside(?: of)?) (?:my|our|what i|the scope of my)"
        r" ?(?:[\w'-]{1,30} )?(?:knowledge|"
        r"scope|capabilit|training|expertise|can|know|ability)",
        r"\b(?:nobody|no one) knows\b|\byour guess is as good\b|\bbeats me\b|\bno (?:idea|clue)\b",
        # It cannot be told.
        rf"\bnot (?:[\w'-]{{1,30}} ){{0,2}}?(?:possible|feasible)(?: for \w{{1,30}})? to "
        rf"(?:[\w'-]{{1,30}} ){{0,2}}?{_TELL}",
        rf"\b(?:impossible|not enough|too little) to (?:[\w'-]{{1,30}} ){{0,2}}?{_TELL}",
        rf"\b(?:hard|difficult) to (?:[\w'-]{{1,30}} )?{_TELL}"
        r"(?=.{0,120}\b(?:from|based|without|with the|given|alone|whether|this|answer))",
        rf"^(?:unable|not able) to (?:[\w'-]{{1,30}} )?{_TELL}",
        r"\b(?:cannot|could not) (?:[\w'-]{1,30} ){0,2}?be (?:[\w'-]{1,30} ){0,2}?(?:determined|"
        r"answered|"
        r"calculated|inferred|established|ascertained|concluded|computed|verified|confirmed|"
        r"derived|deduced|assessed|drawn|known|found in|identified from|accurately)",
        rf"\b(?:insufficient|not enough|inadequate|not sufficient|too little) {_W}{{0,2}}?"
        r"(?:information|info|data|context|details?)\b",
        r"\b(?:information|context|data|details|text|passages?|documents?)(?: [\w'-]{1,30}){0,4}? "
        rf"{_IS} (?:[\w'-]{{1,30}} )?(?:insufficient|inadequate|not enough|not sufficient|too "
        rf"limited|"
        r"too sparse|too vague)",
        rf"\b(?:question|answer|query)(?: [\w'-]{{1,30}}){{0,3}}? {_IS} "
        rf"(?:[\w'-]{{1,30}} )?(?:unanswerable|unknown|"
        r"undeterminable|indeterminate|not answerable|not known|not answered|outside|beyond|"
        r"out of scope)",
        r"\banswer(?: to (?:the|this|your|that) (?:[\w'-]{1,30} )?question)?(?: "
        r"[\w',?-]{1,30}){0,12}? (?:is|was) "
        rf"not (?:[\w'-]{{1,30}} )?{_GIVEN}\b",
        rf"\b(?:it|this|that) {_IS} (?:[\w'-]{{1,30}} )?(?:unclear|not clear|unknown|not known|"
        rf"outside|"
        r"beyond|out of scope)\b",
        r"\bnot in (?:the )?(?:[\w'-]{1,30} )?context\b|\bnot answerable\b|\bunanswerable\b",
        r"\bno (?:[\w'-]{1,30} )?(?:answer|conclusion|determination)(?: [\w'-]{1,30}){0,5}? "
        r"(?:can|could) be\b",
        r"\bno way (?:to|of) (?:know|tell|determin|be sure)",
        r"\bas an? (?:ai|language model|large language model|artificial)\b",
        r"\bmy (?:training|knowledge)(?: data)? (?:does not|only|ends|stops|is limited)",
    ),
    lacks=at_words(
        # The sources lack it.
        rf"\b{_SOURCE}\b[^;]{{0,90}}?\b(?:(?:does|do|did|has|have|is|are|was|were) not|cannot|"
        rf"never|"
        rf"nowhere|fails? to|nor (?:does|do)) (?:[\w'-]{{1,30}} ){{0,4}}?{_HOLD}",
        rf"\b(?:does|do) not (?:[\w'-]{{1,30}} ){{0,3}}?{_WRITES}",
        rf"^(?:(?:but|and|however|also|or),? )?(?:(?:it|they|this|these|which) )?(?:does|do|did) "
        rf"not "
        rf"(?:[\w'-]{{1,30}} ){{0,3}}?{_HOLD}",
        r"\byou (?:have|did) not (?:[\w'-]{1,30} ){0,2}?(?:provide|given|give|share|include|specif|"
        r"mention|upload|attach|suppl)",
        rf"\bnone of (?:the {_W}{{0,3}}?{_SOURCE}|them|these|those|it)\b|\bneither "
        rf"(?:of )?(?:the )?"
        rf"(?:[\w'-]{{1,30}} )?{_SOURCE}\b|\bneither (?:is|are|was|were|of them|figure|value)\b",
        rf"\bno {_W}{{0,2}}?{_SOURCE}\b[^;]{{0,60}}?\b(?:mention|contain|cover|address|answer|"
        rf"describ|"
        r"discuss|match|specif)",
        rf"\bnothing (?:[\w'-]{{1,30}} ){{0,4}}?(?:in|from) (?:the|this|these|my|our|your|them)"
        rf" ?{_W}{{0,3}}?"
        rf"(?:{_SOURCE})?|\b(?:says?|contains?|includes?|there is|mentions?) nothing\b",
        rf"\bthere (?:is|are|was|were) (?:[\w'-]{{1,30}} )?(?:no|not any|not a|not enough) "
        rf"(?!one |single |simple |easy |definitive |wrong |right ){_W}{{0,3}}?{_INFO}\b",
        rf"\bthere (?:does|do) not (?:appear|seem) to be (?:any|a|enough) {_W}{{0,3}}?{_INFO}\b",
        rf"\bno {_W}{{0,4}}?{_INFO}\b(?: [\w'-]{{1,30}}){{0,12}}? (?:is|are|was|were|has been|"
        rf"have been|"
        rf"could be|can be) (?:[\w'-]{{1,30}} )?{_GIVEN}",
        rf"^(?:sorry,? )?(?:but )?no {_W}{{0,2}}?(?:information|mention|details?|reference|"
        r"documentation)\b",
        rf"\b(?:contains?|provides?|gives?|given|has|have|includes?|offers?|holds?|makes?|with|"
        rf"lists?) "
        rf"no (?:[\w'-]{{1,30}} ){{0,2}}?{_INFO}\b",
        rf"\b(?:not|nowhere|never) {_ADVERB}{_WRITTEN}\b(?! to\b)",
        rf"\b{_FACT}\b[^;]{{0,60}}? (?:is|are|was|were|has|have) not "
        rf"(?:been )?(?:[\w'-]{{1,30}} )?{_GIVEN}\b",
        rf"\bnot (?:[\w'-]{{1,30}} ){{0,2}}?{_GIVEN} (?:in|within|from|by|on)"
        rf" {_W}{{0,4}}?{_SOURCE}\b",
        rf"\bnot (?:[\w'-]{{1,30}} )?(?:directly|explicitly) {_GIVEN}|\bnot "
        rf"(?:been )?provided\b(?=[.!]?$)",
        rf"\b{_FACT}\b(?: [\w'-]{{1,30}}){{0,4}}? (?:is|are|remains?) "
        rf"(?:[\w'-]{{1,30}} )?(?:missing|absent|unknown|"
        r"unclear|unspecified|unavailable|undisclosed|omitted|undocumented)\b",
        rf"\b(?:missing|absent|omitted) from (?:the|this|these) {_W}{{0,4}}?{_SOURCE}\b|"
        r"\bis unspecified\b|\bunspecified\.?$",
        rf"\b(?:lacks?|lacking|lack of|without) {_W}{{0,3}}?(?:information|data|details?|context|"
        r"specifics|figures?)\b",
        rf"\b(?:outside(?: of)?|beyond|out of) (?:the )?(?:scope|{_SOURCE})\b",
        r"\b(?:text|passage|document|context|excerpt|list|table) (?:\w{1,30} ){0,2}?(?:cut "
        r"off|ends|"
        r"silent)\b|\b(?:is|are) (?:silent|cut off)\b",
    ),
    unless=any_of(r"\b(?:if|when|whenever|unless|until|means that|because of)\b"),
    opens=any_of(
        r"^(?:i am|we are)? ?(?:so |very |really |truly |terribly )?(?:sorry|apologi[sz]e)",
        r"^(?:my|our|sincere) apologies|\b(?:i|we) apologi[sz]e\b",
        r"^(?:unfortunately|regrettably|thanks?|thank you|sure|hello|hi|okay|ok|hmm|well|honestly|"
        r"great question|good question|that is a good question)\b.{0,40}$",
        r"^(?:in order )?to (?:answer|calculate|determine|find|provide|get|obtain|compute|assess|"
        r"accurately|fully|properly|give|verify|confirm|identify|know|help|make|see|evaluate|say|"
        r"address)\b",
        r"^(?:based on|according to|from|in|within|given|considering|after|having|upon|regarding|"
        r"as for|with regard to|with respect to|looking at|looking through) [^.]{0,80}$",
        r"^(?:i|we) (?:have )?(?:looked|went|gone|searched|read|reviewed|checked|understand|would "
        r"like to|wish i)\b|^the (?:question|customer|user) (?:asks|is about|wants)\b",
        r"\b(?:we|one|you) would (?:[\w'-]{1,30} )?(?:need|require|have to)\b|\?$|\bformula\b|=",
        r"\b(?:is|are) (?:typically |usually |generally |often )?(?:calculated|computed|defined)\b",
        r"^(?:and|or|however|therefore|thus|so|but|also|additionally|instead|otherwise)$",
        rf"\b(?:provided|given|available|retrieved|supplied|above|only|attached)"
        rf" {_W}{{0,2}}?{_SOURCE}"
        r"(?: [\w'-]{1,30}){0,3}? (?:only|mainly|primarily|mostly|just|merely|solely|focus|discuss|"
        r"mentions?|covers?|talks?|describes?|pertains?|refers?|relates?|is about|are about|deals?|"
        r"outlines?|address|includes?|contains?|lists?)(?! that)",
        rf"^(?:while |although |though )?(?:the|these|this|those|both|source "
        rf"[a-z0-9]{{1,9}})? ?(?:[\w'-]{{1,30}} )?"
        rf"(?:{_SOURCE}|minutes|they|it|both|source \w{{1,9}}) (?:[\w'-]{{1,30}} )?(?:mentions?|"
        rf"refers? to|"
        r"describes?|covers?|discuss(?:es)?|talks? about|is about|are about|focus(?:es)? on|is a|"
        r"has "
        r"a (?:section|chapter|page)) (?!that\b)",
    ),
    asides=any_of(
        r"\b(?:please|let me know|feel free|happy to|glad to|refer(?:ring)? to|reach out)\b",
        r"\byou (?:can|could|may|might|should|will|would|must|need|want|are looking)\b",
        r"\bif (?:you|we|i|one|there|the|it|this|that|any|more|additional|so)\b",
        r"\bi (?:would |can |could |will )?(?:be happy|be glad|be able|recommend|suggest|advise|"
        r"encourage|help|assist|guide|try|only|be|gladly|provide|explain|answer|calculate)\b",
        r"\b(?:we|one) (?:would|will|can|could|need|should|must)\b",
        r"\bwould (?:need|require|typically|usually|normally|generally|be|have|also|involve|"
        r"include|"
        r"likely|help|allow|find|depend|add|use|provide|indicate|suggest)\b",
        r"\b(?:consult|contact|check|verify|visit|look(?:ing)? (?:at|up|in|for)|see the|ask the|"
        r"ask "
        r"your)\w*\b|\b(?:may|might|could) (?:have|know|provide|help|contain)\b",
        r"\b(?:it is|it would be|it may be) (?:recommended|necessary|best|advisable|important|"
        r"possible|worth|helpful|useful)",
        r"\b(?:typically|usually|generally|normally|commonly|often|for example|such as)\b",
        r"\bcalculated (?:by|as|using)|\bdefined as|\bdivid(?:e|ed|ing)\b|\bsubtract|\bmultipl",
        r"\b(?:could|can|would|do) you\b|\bis there anything|\bwhat else|\bonce (?:you|the)\b",
        r"\b(?:needed?|required?|necessary|in order) to\b|\brequires?\b|\bneeds? to be\b|\bis "
        r"needed\b",
        r"\b(?:more|additional|further|other) (?:information|context|details|specific|documents|"
        r"assistance|sources|questions)\b|\b(?:can|may) vary\b|\bvary depending\b|\balso known "
        r"as\b",
        r"\bis an? (?:[\w-]{1,30} ){0,2}?(?:measure|metric|ratio|indicator)\b|\bstep-by-step\b",
        r"\bnote that\b|\b(?:keep|bear) in mind\b|\bmy training\b|\btraining data\b|\breal-time\b|"
        r"\bup-to-date\b|\bofficial\b|\breliable\b|\binvestor relations\b|\bconfidential\b",
        r"^(?:[0-9]{1,2}[.)] |[-•*] )?(?:then |next,? |finally,? |first,? )?(?:locate|find|obtain|"
        r"round|calculate|compare|review|download|navigate|use|add|ensure|search|see|ask|try|"
        r"consider|access|determine|identify|gather|divide|take|go to|visit|open|get|provide|"
        r"rephrase|upload|share|send|specify)\b",
        rf"^(?:and |but |however,? |while |instead,? )?(?:the |this |these |that |those |provided |"
        rf"given |available |retrieved |supplied |only |your |my |our |its |above |both |"
        rf"all ){{1,4}}"
        rf"(?:[\w'-]{{1,30}} ){{0,3}}?{_SOURCE}(?: [\w'-]{{1,30}}){{0,3}}? (?:only|mainly|"
        rf"primarily|mostly|just|"
        r"instead|merely|solely|simply|focus|discuss|mentions?|provides?|contains?|includes?|"
        r"covers?|talks?|describes?|pertains?|refers?|relates?|is about|are about|deals?|outlines?|"
        r"addresses|lists?|given|concerns?|lays? out|you|appears? to be)\b(?! that\b)",
        r"^(?:it|they|these|this|those|that|which|instead|what),? (?:only|mainly|primarily|mostly|"
        r"just|merely|instead|focus|discuss|covers?|talks?|describes?|pertains?|deals?|is about|"
        r"are about|relates?|it only|they only)",
        r"^(?:however,? |but )?in general\b|\brefers to\b|\bmeasures (?:a|an|the|how)\b",
        r"\b(?:may|might|can|could) (?:include|vary|affect|reduce|impact|be (?:influenced|affected|"
        r"driven|considered))\b|\b(?:details|years?|data|information) (?:given|provided|"
        r"available)\b",
        r"^(?:where|here's how|here is how|here are the steps|steps?)\b",
        r"^(?:this|that|these|such|the) (?:[\w'-]{1,30} ){0,5}?(?:may|might|could|would|can|"
        r"should) be\b",
        r"\bthe (?:only|latest|most recent) [\w' -]{1,40} (?:mentioned|listed|provided|available|"
        r"discussed)\b",
    ),
    turns=any_of(
        r"(?:however|but|nevertheless|nonetheless|that said|still|yet|although|though|while|"
        r"despite|"
        r"based on|according to|instead|it is likely|probably|perhaps)\b"
    ),
    concludes=any_of(
        r"(?:and |so |but |however,? )?(?:i )?(?:therefore|thus|hence|consequently|as such|"
        r"as a result|accordingly|so|without|since|because|given|for this reason|in conclusion|"
        r"in summary|overall|due to|to summarize|as the|as there|as it stands)\b"
    ),
    results=any_of(
        r"(?:and |so |but |however,? )?(?:therefore|thus|hence|consequently|in summary|overall|"
        r"in conclusion|as a result)\b"
    ),
    supposes=any_of(
        r"(?:[0-9]{1,2}[.)] |[-•*] )?(?:for example|for instance|e\.g\.|if|once|assuming|suppose|"
        r"let's say|say|an (?:increase|decrease)|in general|generally)\b|an? "
        r"(?:[\w-]{1,30} ){1,3}(?:of|above|"
        r"below|greater|higher|lower)\b"
    ),
    answers=any_of(
        r"\b(?:we|i|one|it) can (?:be )?(?:reasonably )?(?:infer|conclude|deduce|assume|estimate)",
        r"\b(?:reasonable|safe|fair|likely) to (?:conclude|assume|infer|say)\b",
        r"(?<!would )(?<!might )(?<!could )(?<!may )\b(?:suggests|suggesting|indicates|indicating|"
        r"implies|implying) (?:that|a|an)\b",
        r"\b(?:it|this|there) (?:appears|seems) (?:that|to)\b(?! (?:the|there|this|it|no|any|be)\b"
        r".{0,60}\b(?:not|no)\b)",
        r"^yes\b|\b(?:most likely|probably|presumably)\b|\bsays that\b",
        r"\b(?:the )?(?:short |final |correct )?answer is (?!not|un|no\b|that i|beyond|outside)",
    ),
    splits=re.compile(
        r",? (?:but|however|although|though|nevertheless|nonetheless)\b,? "
        r"|, (?:so|yet|and) (?=(?:i|it|there|we|you|they)\b)|, so (?=(?:the|this)\b)| [–—] "
    ),
    concedes=re.compile(r"^(?:while|although|though|even though|whereas) [^,]{1,160}, "),
)
