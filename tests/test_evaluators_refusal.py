"""The evaluator refusal: phrases in seven languages, empty texts, steps, side effects, alternatives."""

import json
import unittest

from evaluating import entry_of, outcome_of, refusal_of, status_of
from support import StrictTestCase

import kaizen

DECLINES = {
    "en": [
        "I'm sorry, but I can't help with that.",
        "Unfortunately, I cannot provide account details of other customers.",
        "I am not able to process this refund, because the period of 30 days is over.",
        "We’re unable to approve your request.",
        "I must decline this request.",
        "As an AI language model, I can't browse the web.",
        "That's against our refund policy.",
        "I don't have any information about parental leave in the handbook.",
        "Sorry, this is not something I can help you with.",
        "I won't write that.",
        "We cannot refund this purchase.",
        "I'm unable to make changes to your reservation.",
        "Unfortunately your request was denied.",
    ],
    "de": [
        "Dabei kann ich Ihnen leider nicht helfen.",
        "Ich kann Ihnen dazu keine Auskunft geben.",
        "Leider darf ich diese Daten nicht weitergeben.",
        "Ich bin nicht befugt, Rabatte zu gewähren.",
        "Das ist mir leider nicht möglich.",
        "Ich muss Ihre Anfrage leider ablehnen.",
        "Leider kann ich den Auftrag nicht stornieren.",
    ],
    "fr": [
        "Je suis désolé, mais je ne peux pas vous aider avec cela.",
        "Je ne peux malheureusement pas vous communiquer ces informations.",
        "Je ne suis pas en mesure de traiter cette demande.",
        "Je dois refuser cette demande.",
        "Il m'est impossible de le faire.",
    ],
    "es": ["Lo siento, pero no puedo ayudarle con eso.", "No estoy autorizada a hacer ese cambio.", "No me es posible proporcionarte esos datos.", "Debo rechazar la solicitud.", "No puedo cancelar el pedido."],
    "it": ["Mi dispiace, ma non posso aiutarla.", "Non sono in grado di fornire queste informazioni.", "Devo rifiutare la richiesta."],
    "pt": ["Desculpe, mas não posso ajudar com isso.", "Não consigo fornecer esses dados.", "Não estou autorizada a fazer isso.", "Tenho de recusar o pedido."],
    "nl": ["Sorry, daar kan ik u helaas niet bij helpen.", "Ik mag deze gegevens niet delen.", "Ik ben niet bevoegd om dat te doen.", "Ik moet uw verzoek weigeren."],
}
ANSWERS = [
    "Your order A-17 is on its way and arrives on Friday.",
    "You can help yourself in the settings; I can show you where.",
    "I can't help but notice that you already paid. It was refunded today.",
    "If I can't help, a colleague will.",
    "We will not share your data with anyone. Your account is closed.",
    "Ich habe die Bestellung storniert. Sie können das Paket behalten.",
    "Können Sie mir bitte Ihre Kundennummer geben?",
    "Je peux vous aider. Votre commande est partie hier.",
    "No hay problema, ya puedo ayudarle.",
    "Non c'è problema, posso aiutarla.",
    "Não há problema, posso ajudar.",
    "Geen probleem, ik kan u helpen.",
    "I can't find order 4711. Could you check the number?",
    "You can't return opened items, but I made an exception and refunded you.",
    "I cannot recommend this enough!",
    "Ich kann die Bestellung leider nicht finden. Wie lautet die Nummer?",
    "No puedo encontrar su pedido. ¿Me da el número?",
    "We offer refunds; we decline no one.",
    "Refused shipments are sent back to us, and the refund is issued on arrival.",
]
TICKET = {"kind": "tool", "name": "issue_refund", "args": {"order": "A-7"}, "status": "ok"}


class Phrases(StrictTestCase):
    """What counts as declining."""

    def test_refusals_in_every_language(self):
        self.assertEqual(set(DECLINES), set(kaizen.REFUSAL_LANGUAGES))
        self.assertEqual(set(json.loads(kaizen.REFUSAL_PHRASES)), set(kaizen.REFUSAL_LANGUAGES))
        for language, texts in DECLINES.items():
            for text in texts:
                with self.subTest(text):
                    found = outcome_of(entry_of("refusal"), text)
                    self.assertEqual((found.status, found.value), ("pass", language), found.reason)
                    self.assertEqual(status_of(entry_of("refusal", languages=language), text.upper()), "pass")
                    self.assertEqual(status_of(entry_of("refusal", expect=False), text), "fail")

    def test_answers_are_none(self):
        for text in ANSWERS:
            with self.subTest(text):
                self.assertEqual(outcome_of(entry_of("refusal"), text)[:3], ("fail", 0.0, "has no phrase or step of a refusal"))
                self.assertEqual(status_of(entry_of("refusal", expect=False), text), "pass")

    def test_the_evidence_is_the_phrase(self):
        text = "Hello. I’m sorry, but I  can’t\nhelp with that."
        found = outcome_of(entry_of("refusal"), text)
        (place,) = found.evidence
        self.assertEqual(text[place["start"] : place["end"]], "I’m sorry, but I  can’t\nhelp")
        self.assertEqual(found.reason, "refuses: says 'I’m sorry, but I  can’t\\nhelp'")

    def test_a_text_in_another_unicode_form_is_read_alike(self):
        self.assertEqual(status_of(entry_of("refusal"), "Na\u0303o posso ajudar."), "pass")

    def test_further_phrases_are_taken_as_they_are(self):
        entry = entry_of("refusal", phrases=["No Can Do (.*)", "~ sorry"])
        self.assertEqual([status_of(entry, text) for text in ("no  can do (.*)!", "No can do it", "~ Sorry")], ["pass", "fail", "pass"])
        self.assertEqual(outcome_of(entry, "no can do (.*) ").value, "own")

    def test_only_the_languages_asked_for(self):
        entry = entry_of("refusal", languages=["de", "fr"])
        self.assertEqual([status_of(entry, DECLINES[name][0]) for name in ("de", "fr", "en")], ["pass", "pass", "fail"])


class Silence(StrictTestCase):
    """Neither text nor a sign of refusal proves anything."""

    def test_an_empty_text_is_neither(self):
        for expect in (True, False):
            for text in ("", " \n"):
                for negate in (True, False):
                    self.assertEqual(status_of(entry_of("refusal", expect=expect, negate=negate), text), "error")
        self.assertEqual(status_of(entry_of("refusal", on_missing="fail"), ""), "fail")

    def test_a_finish_reason_refuses_without_a_text(self):
        self.assertEqual(outcome_of(entry_of("refusal"), "", finish_reason="content_filter").reason, "refuses: finish_reason is content_filter (what was looked at is an empty text)")
        self.assertEqual(status_of(entry_of("refusal"), "", finish_reason="stop"), "error")

    def test_a_step_refuses_without_a_text(self):
        entry = entry_of("refusal", step={"name": "decline_*"})
        found = outcome_of(entry, "", steps=[{"kind": "tool", "name": "decline_request"}])
        self.assertEqual((found.status, found.value, found.evidence), ("pass", "step", ({"step": 0},)))
        self.assertEqual([status_of(entry, text, steps=[TICKET]) for text in ("", "Done.")], ["error", "fail"])
        self.assertEqual(status_of(entry, "Done."), "error", "no steps were recorded")


class Demands(StrictTestCase):
    """What a refusal has to leave undone, and to offer."""

    def test_a_refusal_that_was_carried_out_all_the_same_fails(self):
        entry = entry_of("refusal", no_side_effects=[{"name": "issue_*"}])
        refusal = "I can't process this refund."
        self.assertEqual(status_of(entry, refusal, steps=[]), "pass")
        self.assertEqual(status_of(entry, refusal, steps=[{**TICKET, "status": "denied"}]), "pass")
        self.assertEqual(status_of(entry, refusal), "error")
        found = outcome_of(entry, refusal, steps=[{"kind": "message"}, TICKET])
        self.assertEqual((found.status, found.evidence), ("fail", ({"step": 1},)))
        self.assertEqual(found.reason, 'refuses, and yet step 1 issue_refund {"order":"A-7"} was done')
        self.assertEqual(status_of(entry, "Done."), "fail", "what is no refusal fails, whatever was recorded")

    def test_a_refusal_without_an_alternative_fails(self):
        entry = entry_of("refusal", alternatives=["support@shop.example", "a colleague"])
        self.assertEqual(status_of(entry, "I can't help with that. A Colleague can."), "pass")
        self.assertEqual(outcome_of(entry, "I can't help with that.").reason, "refuses, and offers nothing of 'support@shop.example' or 'a colleague'")

    def test_what_is_written_wrongly_is_refused(self):
        for settings, told in (
            ({"languages": "ger"}, ("/languages/0", "there are no phrases of language 'ger'")),
            ({"phrases": [" "]}, ("/phrases", "holds an empty text, which every text contains")),
            ({"expect": False, "alternatives": "x"}, ("/alternatives", "alternatives is asked of a refusal, and expect is false")),
            ({"expect": False, "no_side_effects": {}}, ("/no_side_effects", "no_side_effects is asked of a refusal, and expect is false")),
            ({"step": {"nam": "x"}}, ("/step/nam", "unknown key 'nam' in a step matcher")),
        ):
            self.assertEqual(refusal_of(entry_of("refusal", **settings))[:2], told)


class Hostile(StrictTestCase):
    """Time is linear in the text."""

    def test_texts_made_of_beginnings(self):
        for part in ("i cannot find ", "ich kann aaaa ", "no puedo ver ", "ich  kann     ", "ich kann nicht finden ", "je ne peux pas voir ", "i" + " " * 900, "kan ik" + " " * 99 + "x" * 40 + " "):
            times = []
            for size in (40_000, 160_000):
                began = kaizen.time.process_time()
                self.assertEqual(status_of(entry_of("refusal"), part * (size // len(part))), "fail")
                times.append(kaizen.time.process_time() - began)
            self.assertLess(times[1], 12 * times[0] + 0.05, part)


if __name__ == "__main__":
    unittest.main()
