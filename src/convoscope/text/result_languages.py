"""The same statements of tools in other languages than English: German, Spanish, French, Portuguese and Japanese.

A short text in a language without words here is never taken for data: it may say that the call failed.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Literal

from convoscope.text.language import is_plainly, language_of

KNOWN = ("en", "de", "es", "fr", "pt", "ja")
"""Languages in which failures are known by their words."""
Elsewhere = Literal["failed", "succeeded", "nothing_found"]
_ACCENTS = re.compile("[\u0300-\u036f]")
_WORD = re.compile(r"[^\W_]+")


@lru_cache(maxsize=4096)
def without_accents(text: str) -> str:
    """Letters without their accents; kana keep their marks."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFKD", text)))


def statement_elsewhere(lower: str) -> tuple[Elsewhere, str] | None:
    """What a short text in small letters states in one of the languages, and the words that say so."""
    text = without_accents(lower)
    if match := _NOTHING_FOUND.search(text):
        return "nothing_found", match[0]
    if (match := _FAILS.search(text)) and not _EXPLAINS.search(text):
        return "failed", match[0]
    if (match := _WORKED.search(text)) and not _NEGATION.search(text):
        return "succeeded", match[0]
    return None


def doubt_elsewhere(text: str, longest_name: int = 0) -> str:
    """The words of a short text that deny or speak of failure; the language, where its words are not known.

    So many words may be a name, which is of no language.
    """
    lower = without_accents(text.lower())
    if match := _NEGATION.search(lower) or _HINTS.search(lower):
        return match[0]
    words = _WORD.findall(text)
    if len(words) <= longest_name:
        return ""
    language = language_of(text)
    if language:
        return "" if language in KNOWN else f"in a language that is not known: {language}"
    values = sum(not word.isalpha() or word.isupper() for word in words)
    if 2 * values >= len(words) or any(is_plainly(known, text) for known in KNOWN):
        return ""
    return "in a language that is not known"


_FAILS = re.compile(
    # German
    r"\b(?:fehler (?:ist )?(?:aufgetreten|beim|bei der|im)|fehlgeschlagen|gescheitert|abgesturzt|zeituberschreitung"
    r"|(?:konnten?|kann|konnen) (?:[\w-]{1,30} ){0,6}?nicht (?:\w+ )?(?:werden|geladen|erreicht|gefunden|verarbeitet)"
    r"|(?:dienst|server|system|datenbank|api|schnittstelle|verbindung)\b[^.]{0,40}"
    r"\bnicht (?:erreichbar|verfugbar|moglich)"
    r"|zugriff (?:wurde )?verweigert|keine (?:verbindung|berechtigung)"
    # Spanish
    r"|(?:ocurrio|ha ocurrido|se produjo|se ha producido|hubo) un (?:error|fallo|problema)"
    r"|error (?:al|interno|inesperado)"
    r"|no se (?:ha |han )?(?:pudo|pudieron|puede|pueden|podido)|no fue posible|ha fallado|acceso denegado"
    r"|(?:servicio|servidor|sistema)\b[^.]{0,40}\bno (?:esta disponible|responde|disponible)|tiempo de espera agotado"
    # French
    r"|(?:une )?erreur (?:s'est|est|interne|inattendue|lors|de)|a echoue|echec (?:de|du|lors)|impossible (?:de |d')"
    r"|n['’]a pas pu|n['’]ont pas pu|acces refuse|delai (?:d'attente )?depasse"
    r"|(?:service|serveur|systeme)\b[^.]{0,40}\b(?:indisponible|ne repond pas|injoignable)"
    # Portuguese
    r"|ocorreu um (?:erro|problema)|erro (?:ao|interno|inesperado)|nao foi possivel|nao (?:pode|podem) ser"
    r"|falha (?:ao|na|no)|falhou|acesso negado"
    r"|(?:servico|servidor|sistema)\b[^.]{0,40}\b(?:indisponivel|nao responde|fora do ar))"
    # Japanese
    r"|エラーが(?:発生|起き)|に?失敗しました|できませんでした|(?:接続|利用|処理|取得)できません|タイムアウトしました"
)
_NOTHING_FOUND = re.compile(
    r"\b(?:(?:nicht|nichts) gefunden|keine? (?:[\w-]{1,30} ){0,6}?(?:gefunden|vorhanden|treffer|ergebnisse)"
    r"|existiert nicht|no (?:se )?(?:encontr\w{1,12}|hay resultados|existe)"
    r"|ningun[ao]? (?:\w{1,20} ){0,4}?encontrad[oa]|sin resultados"
    r"|aucune? (?:\w{1,20} ){0,4}?(?:trouve|resultat)\w{0,3}|introuvables?|n['’]existe pas|pas (?:ete )?trouvee?s?"
    r"|nao (?:foi |foram )?encontrad\w{1,3}|nao existe|nenhum[a]? (?:\w{1,20} ){0,4}?encontrad\w{1,3})\b"
    r"|見つかりません|存在しません|該当(?:なし|する[^。]{0,20}ありません)"
)
_WORKED = re.compile(
    r"\b(?:erfolgreich|(?:wurden?|ist|sind) (?:[\w-]{1,30} ){0,5}?(?:gebucht|gespeichert|erstellt|storniert"
    r"|aktualisiert|gesendet|geandert|angelegt|bestatigt|reserviert|geloscht|erstattet)"
    r"|con exito|exitosamente|correctamente"
    r"|(?:ha sido|fue|esta) (?:confirmad|reservad|cread|actualizad|cancelad|enviad|guardad)[oa]|reserva confirmada"
    r"|avec succes|(?:a|ont) (?:bien )?ete (?:confirme|reserve|cree|envoye|modifie|annule|enregistre)\w{0,3}"
    r"|com sucesso|foi (?:confirmad|reservad|criad|atualizad|cancelad|enviad|salv)[oa])\b"
    r"|(?:完了|成功|予約|確定|送信|登録|更新|変更|作成|キャンセル)(?:し|され)ました"
)
_NEGATION = re.compile(
    r"\b(?:nicht|nichts|keine?[mnrs]?|ohne|nie|niemals|ningun[ao]?|nunca|tampoco|aucune?|pas|jamais|nao|nenhum[a]?|sem)\b"
    r"|\bno (?:se|es|esta|fue|ha|hay|hemos|puede|existe|responde|disponible|encontrad[oa]|tiene)\b"
    r"|ません|なかった|ない(?:です|。|$)|不可|なし"
)
_HINTS = re.compile(
    r"\b(?:\w{0,20}fehler\w{0,6}|fehlt|fehlen|abgelehnt|abgelaufen|abgebrochen|verweigert|gesperrt|ungultige?[rsn]?|gescheitert"
    r"|storung|zeituberschreitung|wartung\w{0,10}|problemen?|erneut|spater|leider"
    r"|fallo|fallid[oa]|rechazad[oa]|bloquead[oa]|problemas?|mantenimiento|mas tarde"
    r"|de nuevo|caducad[oa]|expirad[oa]|denegad[oa]|invalid[oa]|agotad[oa]"
    r"|erreurs?|echec|echoue|est refusee?|a expire|expiree|invalide|indisponibles?|malheureusement"
    r"|problemes?|interdite?s?|reessayer|plus tard|bloquee?"
    r"|erros?|falha|falhou|recusad[oa]|negad[oa]|manutencao|novamente"
    r"|mais tarde|indisponivel|infelizmente|errore|fallit[oa]|scadut[oa])\b"
    r"|エラー|失敗|メンテナンス|無効|拒否|期限切れ|错误|失败|錯誤|오류|실패|ошибк"
)
_EXPLAINS = re.compile(
    r"\b(?:wenn|falls|sobald|bedeutet|si|cuando|significa|quand|lorsque|signifie|quando|caso)\b|場合|とき"
)
