"""Confirmation: what counts as a yes, for which actions, and whether what was done had been said."""

import time
import unittest

import support
from support import kaizen


def says_yes(message, *further):
    """Whether *message* consents."""
    return kaizen.says_yes(message, kaizen.consent_phrases(list(further)))


def is_said(value, *texts):
    """Whether *value* stands in one of *texts*."""
    return kaizen.Spoken(list(texts)).says(value)


def user(text):
    """A message of the user."""
    return {"kind": "message", "role": "user", "text": text}


def agent(text):
    """A message of the agent."""
    return {"kind": "message", "role": "assistant", "text": text}


def call(name, status="ok", **args):
    """A tool call with *args*."""
    return {"kind": "tool", "name": name, "args": args, "status": status}


def confirmation(steps, **entry):
    """The outcome of `confirmation` of the tool pay, unless *entry* says otherwise."""
    entry = {"id": "x", "type": "confirmation", "action": {"name": "pay"}, **entry}
    observation = steps if isinstance(steps, dict) else {"steps": steps}
    return kaizen.prepare_entry(entry).evaluate(observation, {"id": "c", "input": ""}, {})


class Consent(support.StrictTestCase):
    """Which messages say yes. The sentences are our own."""

    def test_a_sentence_that_begins_with_a_word_of_consent_says_yes(self):
        for word in ("yes", "yeah", "yep", "correct", "exactly", "confirmed", "agreed", "approved", "absolutely"):
            for form in ("{}", "{}.", "{}!", "{}, please", "{}, that is the one I mean.", "Great, {}", "I see, {}, do that", "“{}”", "  {}\n", "Hm. {}."):
                for spelt in (word, word.upper(), word.capitalize()):
                    with self.subTest(message=form.format(spelt)):
                        self.assertTrue(says_yes(form.format(spelt)))

    def test_a_phrase_of_going_ahead_says_yes_anywhere_in_a_sentence(self):
        phrases = ["go ahead", "please proceed", "I confirm"]
        phrases += [f"{what}{verb} {how}" for what in ("that", "everything") for verb in (" looks", " sounds", " is", "'s", "’s") for how in ("right", "good", "correct", "fine")]
        for phrase in phrases:
            for form in ("{}", "{}.", "Thanks, {} then.", "You can {} now!", "Ok, {}", "Which bike? The red one. {}", "I don't mind, {}", "{} with both of them"):
                with self.subTest(message=form.format(phrase)):
                    self.assertTrue(says_yes(form.format(phrase)))

    def test_sure_ok_and_fine_say_yes_only_as_the_whole_message(self):
        for word in ("Sure", "ok", "OK", "okay", "fine", "Fine"):
            for form in ("{}", "{}.", "{}!", " {} \n", "{} :)", "{}…"):
                with self.subTest(message=form.format(word)):
                    self.assertTrue(says_yes(form.format(word)))
            for form in ("{}! My number is 4711", "{}, my name is Ann Lee.", "{} and what about the deposit", "{} then", "{}?", "that would be {}", "{}\nA-7"):
                with self.subTest(message=form.format(word)):
                    self.assertFalse(says_yes(form.format(word)))

    def test_a_question_does_not_say_yes(self):
        for message in (
            "Yes?",
            "yes, can I also add a helmet?",
            "Is everything correct?",
            "Shall I say that looks good?",
            "Did you say go ahead?!",
            "Could you go ahead and tell me the price",  # without its mark
            "Can you please proceed",
            "Is that right? Is it really?",
            "Would you confirm that sounds right",
        ):
            with self.subTest(message=message):
                self.assertFalse(says_yes(message))
        for message in ("Yes. What does it cost?", "Is it 12.50? Yes, do it.", "What was the total again?\nyes please"):
            with self.subTest(message=message):
                self.assertTrue(says_yes(message))

    def test_a_message_that_begins_with_no_wait_or_not_yet_does_not_say_yes(self):
        for start in ("No", "no", "Wait", "Not yet", "NO", "Nope", "“No", "...wait"):
            for rest in ("", ".", ", thanks", ". Yes, cancel the other one.", ", that's correct", "! Go ahead with the second", ", yes"):
                with self.subTest(message=start + rest):
                    self.assertFalse(says_yes(start + rest))

    def test_choosing_asking_and_adding_are_not_consent(self):
        for message in (
            "The second one, please.",
            "Option B",
            "I'd like the cheaper of the two",
            "I would rather have it on Monday",
            "Please cancel my booking K-20.",
            "I want to extend it by two days",
            "and yes, I also want a helmet",
            "And yes, I also want to cancel the other one.",
            "My phone number is 4711",
            "Let me think about it.",
            "What happens to my deposit?",
            "Maybe.",
            "I think so",
            "k",
            "Great",
            "I see.",
            "Perfect, thanks",
            "",
            "   ",
            "?!",
            "👍",
        ):
            with self.subTest(message=message):
                self.assertFalse(says_yes(message))

    def test_a_yes_that_is_taken_back_or_is_no_answer_is_none(self):
        for message in (
            "Absolutely not",
            "absolutely no way",
            "Yeah, no.",
            "yeah no",
            "Yes and no",
            "Exactly what would that cost",
            "exactly which booking do you mean",
            "Correct my address first, please.",
            "correct the amount to 5",
            "Don't go ahead",
            "Please don’t go ahead",
            "I did not say go ahead",
            "You should never go ahead without asking",
            "Before you go ahead, tell me the price.",
            "There is no need to go ahead",
            "Make sure everything is correct",
            "I hope everything is fine",
            "Let me know if that sounds right",
            "I don't think that's correct",
            "That is not right",
            "Yesterday I called you",
            "yes-terday",
        ):
            with self.subTest(message=message):
                self.assertEqual(says_yes(message), message == "yes-terday")  # a word ends at a hyphen
        for message in ("Yes, no problem", "Yes no problem at all", "Yes, not a day longer please", "I don't care about the fee, go ahead"):
            with self.subTest(message=message):
                self.assertTrue(says_yes(message))

    def test_further_phrases_say_yes_too(self):
        self.assertFalse(says_yes("Ja, bitte machen"))
        self.assertTrue(says_yes("Ja, bitte machen", "ja, bitte", "d'accord"))
        self.assertTrue(says_yes("bon, D’ACCORD", "ja, bitte", "d'accord"))
        self.assertFalse(says_yes("jaja, bitte", "ja, bitte"))
        self.assertFalse(says_yes("Nein, ja, bitte?", "ja, bitte"))
        self.assertTrue(says_yes("a.b (x)", "(x)"))  # a phrase is no pattern
        self.assertFalse(says_yes("a.b xx", "x."))

    def test_hostile_and_long_messages_take_linear_time(self):
        pieces = ["yes? ", "not go ahead ", "go ahead if not ", ",", ".", "a.", "! ", " ", "\n", "great, ", "i see, ", "that is ", "no, ", "sure", "if ", "’", "yes, no ", "\u0130"]
        for piece in pieces:
            with self.subTest(piece=piece):
                started = time.perf_counter()
                says_yes(piece * (100_000 // len(piece)))
                says_yes("yes, no" + piece * (100_000 // len(piece)) + "x")
                says_yes("x" * 50_000 + " not " + piece * (50_000 // len(piece)))
                self.assertLess(time.perf_counter() - started, 5)  # 0.2 s here; quadratic time would be minutes


class SpokenValues(support.StrictTestCase):
    """In which forms a value counts as said."""

    def test_numbers_are_the_same_number_whatever_their_signs_and_separators(self):
        # (value, text, said?)
        table = [
            (2, "for 2 days", True),
            (2, "for 12 days or 20", False),
            (2, "2.5 hours", False),
            (2, "bike K-2, model x2, version 1.2.3", False),
            (1250, "$1,250.00 in all", True),
            (1250, "1.250,00 €", True),
            (1250, "1'250", True),
            (1250, "1,25", False),
            (12.5, "12.50 EUR", True),
            (12.5, "12,50 €", True),
            (12.5, "112.50", False),
            (-5, "a refund of $5", True),
            (0.1, "0.10", True),
            (5, "five", False),
            ("$12.50", "it comes to 12.5", True),
            ("1,250", "1250 euros", True),
            ("1250 €", "€1,250.00", True),
            (1e21, "1e21", True),
            (10**400, "many", False),
        ]
        for value, text, said in table:
            with self.subTest(value=value, text=text):
                self.assertIs(is_said(value, text), said)

    def test_texts_are_whole_words_whatever_their_case_and_separators(self):
        # (value, text, said?)
        table = [
            ("K-20", "your rental k 20", True),
            ("K-20", "(K20)", True),
            ("K20", "K-20", True),
            ("K-2", "K-20", False),
            ("K-20", "AK-20", False),
            ("extend_rental", "Extend Rental", True),
            ("extend_rental", "extend-rental", True),
            ("art", "start", False),
            ("art", "Art.", True),
            ("Ann Lee", "ANN  lee", True),
            ("Ann Lee", "Joann Lee", False),
            ("O'Neil", "Ms O’Neil", True),
            ("Straße", "STRASSE 5", True),
            ("ann@example.com", "Ann@Example.com.", True),
            ("new york", "New\nYork", True),
            ("", "anything", True),
            (None, "anything", True),
            (True, "true", True),
            ("7", "7 days", True),
        ]
        for value, text, said in table:
            with self.subTest(value=value, text=text):
                self.assertIs(is_said(value, text), said)

    def test_dates_are_said_in_their_written_forms(self):
        good = ["2026-03-05", "2026/3/5", "March 5", "March 5th, 2026", "march the 5th", "5 March", "the 5th of March 2026", "Mar. 5", "5. Mar 2026",
                "05/03/2026", "3/5/2026", "3/5/26", "5.3.2026", "on 05-03-2026."]  # fmt: skip
        bad = ["2025-03-05", "March 5, 2025", "March 15", "March 50", "15 March", "May 5", "6/3/2026", "5/3/2025", "the 5th", "March", "5:30 March"]
        for texts, said in ((good, True), (bad, False)):
            for text in texts:
                with self.subTest(text=text):
                    self.assertIs(is_said("2026-03-05", f"It ends on {text}"), said)
        self.assertTrue(is_said("2026-09-01", "Sept 1"))
        self.assertFalse(is_said("2026-13-45", "2026"))

    def test_the_time_of_a_date_is_said_too(self):
        # (text, said?)
        table = [("March 5 at 14:30", True), ("5 March, 2:30 pm", True), ("March 5, 2:30 p.m.", True), ("March 5", False), ("March 5 at 2:30 am", False), ("14:30", False)]
        for text, said in table:
            with self.subTest(text=text):
                self.assertIs(is_said("2026-03-05T14:30:00Z", text), said)
        self.assertTrue(is_said("2026-03-05T09:00", "March 5, 9 am"))
        self.assertTrue(is_said("2026-03-05 00:00", "5 March, 12 am"))

    def test_of_lists_and_objects_each_value_is_said(self):
        self.assertTrue(is_said([2, "K-20", {"day": "2026-03-05"}], "K-20 for 2 days", "from March 5"))
        self.assertFalse(is_said([2, "K-20"], "K-20"))
        self.assertTrue(is_said([], "x"))

    def test_words_do_not_join_across_messages(self):
        self.assertFalse(is_said("Ann Lee", "Ann", "Lee"))

    def test_hostile_and_long_texts_take_linear_time(self):
        # (value, piece of the text)
        table = [("ab", "a"), ("a a a", "a "), (5, "1"), ("2026-03-05", "5 "), ("2026-03-05", "march "), ("2026-03-05", "5 of "), ("x", "\u0130"), ("a-b", "-")]
        for value, piece in table:
            with self.subTest(value=value, piece=piece):
                started = time.perf_counter()
                is_said(value, piece * (100_000 // len(piece)))
                self.assertLess(time.perf_counter() - started, 5)  # 0.2 s here; quadratic time would be minutes


class Confirmation(support.StrictTestCase):
    """Leaf 15: the user agreed before the agent acted."""

    ASK = (user("Please extend K-20."), agent("2 days for $12.50. Shall I go ahead?"))

    def test_a_yes_in_the_latest_message_before_the_action_is_consent(self):
        outcome = confirmation([*self.ASK, user("Yes."), call("get"), agent("One moment."), call("pay")])
        self.assertEqual((outcome.status, outcome.score, outcome.value), ("pass", 1.0, 0))
        self.assertEqual([each["step"] for each in outcome.evidence], [2, 5])

    def test_no_action_is_not_applicable_whatever_was_said(self):
        self.assertEqual(confirmation([*self.ASK, user("No.")]).status, "not_applicable")
        self.assertEqual(confirmation([]).status, "not_applicable")
        self.assertEqual(confirmation({"output": "x"}).status, "error")

    def test_each_action_without_consent_fails_with_its_reason(self):
        # (steps, words)
        table = [
            ([call("pay")], "no messages were recorded"),
            ([agent("Hello"), call("pay")], "the user had said nothing before"),
            ([user("Yes, pay"), call("pay")], "the agent had said nothing before the user's latest message (step 0)"),
            ([*self.ASK, call("pay")], "the agent had said nothing before"),
            ([*self.ASK, user("How much?"), call("pay")], "(step 2) does not say yes"),
            ([*self.ASK, user("Sure! My number is 4711"), call("pay")], "does not say yes"),
            ([*self.ASK, user("No, wait"), call("pay")], "does not say yes"),
            ([*self.ASK, user("Yes."), agent("Which card?"), user("The blue one."), call("pay")], "the yes of step 2 does not count, something was said since"),
            ([*self.ASK, call("pay"), user("Yes.")], "the agent had said nothing before"),
        ]
        for steps, words in table:
            with self.subTest(words=words):
                outcome = confirmation(steps)
                self.assertEqual(outcome.status, "error" if words.startswith("no messages") else "fail")
                self.assertIn(words, outcome.reason)

    def test_attempts_need_consent_whatever_came_of_them(self):
        for status in ("ok", "error", "denied", "timeout", None):
            with self.subTest(status=status):
                self.assertEqual(confirmation([*self.ASK, user("How much?"), call("pay", status)]).status, "fail")

    def test_one_yes_covers_every_action_until_the_user_speaks_again(self):
        yes = [*self.ASK, user("Yes, cancel both.")]
        self.assertEqual(confirmation([*yes, call("pay", id=1), call("pay", id=2)]).status, "pass")
        self.assertEqual(confirmation([*yes, call("pay", id=1), agent("Done. Anything else?"), call("pay", id=2)]).status, "pass")
        outcome = confirmation([*yes, call("pay", id=1), agent("Done."), user("Thanks, my name is Ann."), call("pay", id=2)])
        self.assertEqual((outcome.status, outcome.value), ("fail", 1))
        self.assertTrue(outcome.reason.startswith('step 6 pay {"id":2}: '))

    def test_after_a_failed_try_other_arguments_for_the_same_entity_need_a_new_yes(self):
        yes = [*self.ASK, user("Yes.")]
        # (actions, status with same: id, status without same)
        table = [
            ([call("pay", "error", id=1, n=10), call("pay", id=1, n=9)], "fail", "fail"),
            ([call("pay", "denied", id=1, n=10), call("pay", id=1, n=9)], "fail", "fail"),
            ([call("pay", "timeout", id=1, n=10), call("pay", id=1, n=9)], "fail", "fail"),
            ([call("pay", "error", id=1, n=10), call("pay", id=1, n=10)], "pass", "pass"),  # the same again
            ([call("pay", "error", id=1, n=10), call("pay", id=1, n=10.0)], "pass", "pass"),
            ([call("pay", id=1, n=10), call("pay", id=1, n=9)], "pass", "pass"),  # nothing failed
            ([call("pay", "error", id=1, n=10), call("pay", id=2, n=9)], "pass", "fail"),  # another entity
            ([call("pay", None, id=1, n=10), call("pay", id=1, n=9)], "pass", "pass"),  # not known to have failed
            ([call("pay", "error", id=1, n=10), call("pay", "error", id=1, n=9), call("pay", id=1, n=10)], "fail", "fail"),
            ([call("pay", "error", n=10), call("pay", n=9)], "fail", "fail"),  # neither says which: the same
        ]
        for actions, with_same, without in table:
            with self.subTest(actions=actions):
                self.assertEqual(confirmation([*yes, *actions], same=["/id"]).status, with_same)
                self.assertEqual(confirmation([*yes, *actions], same="id").status, with_same)
                self.assertEqual(confirmation([*yes, *actions]).status, without)
                self.assertEqual(confirmation([*yes, *actions], same=["/id"], invalidate_on_change=False).status, "pass")
        outcome = confirmation([*yes, call("pay", "error", id=1, n=10), call("pay", id=1, n=9)], same=["/id"])
        self.assertIn("needed a new yes: step 3 ended in error, with other arguments", outcome.reason)

    def test_a_new_yes_covers_the_other_arguments(self):
        steps = [*self.ASK, user("Yes."), call("pay", "error", id=1, n=10), agent("Only 9 is possible. Shall I?"), user("Yes."), call("pay", id=1, n=9)]
        self.assertEqual(confirmation(steps, same=["/id"]).status, "pass")

    def test_another_tool_is_no_repair_of_the_first(self):
        steps = [*self.ASK, user("Yes."), call("pay", "error", id=1, n=10), call("pay_slowly", id=1, n=9)]
        self.assertEqual(confirmation(steps, action={"name": "pay*"}, same=["/id"]).status, "pass")

    def test_what_is_done_was_said_before_the_yes_or_in_it(self):
        ask, yes = agent("2 days for $12.50. Shall I?"), user("Yes.")
        # (steps before the action, arguments of the action, status)
        table = [
            ([user("Extend it"), ask, yes], {"days": 2, "amount": 12.5}, "pass"),
            ([user("Extend it"), ask, yes], {"days": 3, "amount": 12.5}, "fail"),
            ([user("Extend it"), ask, yes], {"days": 2}, "pass"),  # a call without that argument is not asked
            ([user("Extend it"), ask, yes], {"days": None, "amount": 12.5}, "pass"),
            ([user("Extend it"), agent("Shall I?"), user("Yes, 2 days for 12.50.")], {"days": 2, "amount": 12.5}, "pass"),
            ([user("2 days for 12.50"), agent("Shall I?"), yes], {"days": 2, "amount": 12.5}, "fail"),  # only the user said it, and not in the yes
            ([user("Extend it"), ask, user("Hm, for whom?"), agent("For you. Shall I?"), yes], {"days": 2, "amount": 12.5}, "pass"),
            ([user("Extend it"), agent("Shall I?"), yes, agent("2 days for $12.50")], {"days": 2, "amount": 12.5}, "fail"),  # said too late
        ]
        for before, args, status in table:
            with self.subTest(before=before, args=args):
                outcome = confirmation([*before, call("pay", **args)], must_echo=["/days", "amount"])
                self.assertEqual(outcome.status, status, outcome.reason)
        outcome = confirmation([user("Extend it"), ask, yes, call("pay", days=3, amount=12.5)], must_echo=["/days", "/amount"])
        self.assertEqual(outcome.reason, 'step 3 pay {"days":3,"amount":12.5}: /days (3) was not said before the yes (step 2)')

    def test_what_was_said_before_the_last_successful_action_does_not_count(self):
        first = [user("Pay twice"), agent("$10 first. Shall I?"), user("Yes"), call("pay", "ok", amount=10)]
        again = [agent("And the second. Shall I?"), user("Yes"), call("pay", amount=10)]
        self.assertEqual(confirmation([*first, *again], must_echo=["/amount"]).status, "fail")
        failed = [*first[:3], call("pay", "error", amount=10)]
        self.assertEqual(confirmation([*failed, *again], must_echo=["/amount"]).status, "pass")
        said = [agent("And $10 again. Shall I?"), *again[1:]]
        self.assertEqual(confirmation([*first, *said], must_echo=["/amount"]).status, "pass")

    def test_two_actions_after_one_yes_are_both_looked_up_before_it(self):
        steps = [user("Pay"), agent("$10 and $20. Shall I?"), user("Yes, both"), call("pay", amount=10), call("pay", amount=20)]
        self.assertEqual(confirmation(steps, must_echo=["/amount"]).status, "pass")

    def test_another_step_can_confirm(self):
        approval = {"kind": "approval", "name": "ask_human", "status": "ok", "args": {"command": "pay 10"}}
        ok = {"confirm": {"kind": "approval", "status": "ok"}}
        # (steps, entry, status)
        table = [
            ([user("Pay 10"), approval, call("pay", amount=10)], ok, "pass"),
            ([approval, call("pay", amount=10)], ok, "pass"),  # nobody spoke at all
            ([user("Pay 10"), {**approval, "status": "denied"}, call("pay")], ok, "fail"),
            ([user("Pay 10"), call("pay"), approval], ok, "fail"),
            ([user("Pay 10"), approval, user("Hm"), call("pay")], ok, "fail"),  # something was said since
            ([user("Pay 10"), {**approval, "batch": 1}, {**call("pay"), "batch": 1}], ok, "fail"),
            ([user("Pay 10"), {"kind": "approval"}, call("pay")], ok, "error"),  # without a status
            ([user("Pay 10"), approval, call("pay", amount=10)], {**ok, "must_echo": ["/amount"]}, "pass"),
            ([user("Pay 10"), approval, call("pay", amount=11)], {**ok, "must_echo": ["/amount"]}, "fail"),
            ([*self.ASK, user("PAY NOW"), call("pay")], {"confirm": {"role": "user", "text": "PAY NOW"}}, "pass"),
            ([user("PAY NOW"), call("pay")], {"confirm": {"role": "user", "text": "PAY NOW"}}, "fail"),  # the agent had said nothing
            ([*self.ASK, user("PAY NOW"), agent("?"), user("yes"), call("pay")], {"confirm": {"role": "user", "text": "PAY NOW"}}, "fail"),
        ]
        for steps, entry, status in table:
            with self.subTest(steps=steps, entry=entry):
                outcome = confirmation(steps, **entry)
                self.assertEqual(outcome.status, status, outcome.reason)

    def test_further_phrases(self):
        steps = [*self.ASK, user("Ja, gerne."), call("pay")]
        self.assertEqual(confirmation(steps).status, "fail")
        self.assertEqual(confirmation(steps, yes=["ja"]).status, "pass")
        self.assertEqual(confirmation(steps, yes="ja, gerne").status, "pass")

    def test_what_the_recording_leaves_open_is_an_error_only_where_it_decides(self):
        yes_cut = {**user("I have read it and "), "truncated": ["text"]}
        ask_cut = {**agent("I will charge "), "truncated": ["text"]}
        open_action = {"kind": "tool", "name": "pay", "args": '{"to": ', "status": "ok", "truncated": ["args"]}
        narrow = {"action": {"name": "pay", "args": {"to": "ann"}}}
        # (steps, entry, status)
        table = [
            ([*self.ASK, yes_cut, call("pay")], {}, "error"),
            ([*self.ASK, {**yes_cut, "text": "Yes, and"}, call("pay")], {}, "pass"),
            ([user("Pay"), ask_cut, user("Yes"), call("pay", amount=5)], {"must_echo": ["/amount"]}, "error"),
            ([user("Pay"), ask_cut, user("Yes, 5"), call("pay", amount=5)], {"must_echo": ["/amount"]}, "pass"),
            ([user("Pay"), agent("5. Shall I?"), user("Yes"), {**open_action, "args": {"amount": 5}}], {"must_echo": ["/amount"]}, "pass"),
            ([user("Pay"), agent("5. Shall I?"), user("Yes"), {**open_action, "args": {"to": "a"}}], {"must_echo": ["/amount"]}, "error"),
            ([user("Pay"), agent("5. Shall I?"), user("Yes"), {**open_action, "args": {"to": "an"}}], {"must_echo": ["/to"]}, "error"),
            ([*self.ASK, user("Yes"), {**open_action, "status": "error"}, {**open_action, "args": '{"to": "b'}], {}, "error"),
            ([*self.ASK, user("Yes"), {**open_action, "status": "error"}, call("pay", to="ann")], {}, "error"),
            ([*self.ASK, user("Yes"), open_action, call("pay", to="ann")], {}, "pass"),
            ([*self.ASK, user("Yes"), open_action], narrow, "error"),  # was there anything to agree to?
            ([*self.ASK, user("Hm"), open_action], narrow, "error"),
            ([*self.ASK, user("Yes"), open_action, call("pay", to="ann")], narrow, "pass"),
            ([*self.ASK, user("Hm"), open_action, call("pay", to="ann")], narrow, "fail"),
            ([*self.ASK, user("Hm"), open_action, agent("Ok?"), user("Yes"), call("pay", to="ann")], narrow, "error"),
        ]
        for steps, entry, status in table:
            with self.subTest(steps=steps, entry=entry):
                outcome = confirmation(steps, **entry)
                self.assertEqual(outcome.status, status, outcome.reason)
                self.assertTrue(outcome.reason)

    def test_refusals(self):
        # (entry, pointer, words)
        table = [
            ({"action": {"nam": "x"}}, "/action/nam", "did you mean 'name'?"),
            ({"action": "pay"}, "/action", "matcher"),
            ({"confirm": {"kind": "yes"}}, "/confirm/kind", "unknown"),
            ({"confirm": {"kind": "approval"}, "yes": ["ja"]}, "/yes", "leave one of them out"),
            ({"yes": [" "]}, "/yes", "empty"),
            ({"yes": []}, "/yes", "empty"),
            ({"same": []}, "/same", "empty"),
            ({"must_echo": [1]}, "/must_echo", "text"),
            ({"invalidate_on_change": "no"}, "/invalidate_on_change", "true or false"),
        ]
        for entry, pointer, words in table:
            with self.subTest(entry=entry), self.assertRaises(kaizen.ConfigurationError) as caught:
                confirmation([], **entry)
            with self.subTest(entry=entry):
                self.assertEqual(caught.exception.pointer, pointer)
                self.assertIn(words, f"{caught.exception.message} {caught.exception.hint}")


BICYCLE_HIRE = {
    "define": {"writes": {"kind": "tool", "name": ["extend_*", "end_*", "charge_*"]}},
    "evaluators": [
        {"id": "right_calls", "type": "sequence", "steps": {"$case": "/expected/calls"}, "within": {"$use": "writes"}},
        {"id": "asked_first", "type": "confirmation", "severity": "hard", "action": {"$use": "writes"}, "same": ["/rental"], "must_echo": ["/days"]},
        {"id": "looked_first", "type": "order", "before": [{"name": "get_rental"}, {"name": "start_rental"}], "after": {"$use": "writes"}, "same": ["/rental"]},
        {"id": "price_told", "type": "number", "select": "messages.assistant", "include": {"$case": "/expected/amounts"}, "on_missing": "not_applicable"},
        {"id": "answered", "type": "steps", "match": {}, "which": "last", "must": {"kind": "message", "role": "assistant"}},
    ],
}  # fmt: skip
EXTENDED = {"calls": [{"name": "extend_rental", "args": {"rental": "K-20", "days": 2}}], "amounts": ["12.50"]}


class BicycleHire(support.TemporaryFolder):
    """The worked example of the design, consent and effects, as files that `kaizen evaluate` reads."""

    LOOK = call("get_rental", rental="K-20")
    ASK = agent("Extending K-20 by 2 days costs $12.50. Shall I?")
    DO = call("extend_rental", rental="K-20", days=2)
    BYE = agent("Done, enjoy the ride.")

    def statuses(self, steps, expected=None):
        """{id: status} of the entries for one trial of *steps*."""
        cases = [{"id": "c", "input": "", "expected": EXTENDED if expected is None else expected}]
        observation = {"case_id": "c", "output": "x", "steps": steps, "input_fingerprint": kaizen.case_input_fingerprint(cases[0])}
        folder = support.make_improvement("hire", cases, BICYCLE_HIRE, candidate=[observation])
        done = support.run_cli("evaluate", folder)
        self.assertEqual(done.status, 0, done.stderr)
        [line] = support.read_lines(folder / "candidate.evaluated.jsonl")
        return {each["id"]: each["status"] for each in line["evaluations"]}

    def check(self, steps, expected=None, **different):
        """Fails unless every entry passes, but for those in *different*."""
        found = self.statuses(steps, expected)
        self.assertEqual(found, {**dict.fromkeys(found, "pass"), **different})

    def test_a_good_run_passes_everything(self):
        self.check([user("Extend K-20 by two days"), self.LOOK, self.ASK, user("Yes, please."), self.DO, self.BYE])

    def test_a_failed_try_and_its_repair_are_one_action(self):
        failed = {**self.DO, "status": "timeout"}
        self.check([user("Extend it"), self.LOOK, self.ASK, user("Yes."), failed, self.DO, self.BYE])

    def test_a_rental_that_was_just_started_needs_no_lookup(self):
        started = {**call("start_rental", bike=7), "result": {"rental": "K-20"}}
        self.check([user("Start and extend"), started, self.ASK, user("Go ahead."), self.DO, self.BYE])

    def test_acting_without_asking(self):
        self.check([user("Extend K-20 by two days"), self.LOOK, self.DO, self.BYE], asked_first="fail", price_told="fail")

    def test_acting_on_an_older_yes(self):
        steps = [user("Extend it"), self.LOOK, self.ASK, user("Yes."), agent("Whose card?"), user("Ann's card"), self.DO, self.BYE]
        self.check(steps, asked_first="fail")

    def test_other_days_than_those_that_were_said(self):
        longer = call("extend_rental", rental="K-20", days=3)
        self.check([user("Extend it"), self.LOOK, self.ASK, user("Yes."), longer, self.BYE], asked_first="fail", right_calls="fail")

    def test_acting_on_another_rental_than_the_one_that_was_looked_up(self):
        other = call("get_rental", rental="K-21")
        self.check([user("Extend it"), other, self.ASK, user("Yes."), self.DO, self.BYE], looked_first="fail")

    def test_a_desk_that_must_refuse(self):
        refuse = {"calls": [], "amounts": []}
        steps = [user("Extend K-20"), self.LOOK, agent("I cannot extend it.")]
        self.check(steps, refuse, asked_first="not_applicable", looked_first="not_applicable", price_told="not_applicable")
        told = self.statuses([user("Extend K-20"), self.LOOK, self.ASK, user("Yes."), self.DO, self.BYE], refuse)
        self.assertEqual(told["right_calls"], "fail")

    def test_ending_without_a_word(self):
        self.check([user("Extend it"), self.LOOK, self.ASK, user("Yes."), self.DO], answered="fail")


if __name__ == "__main__":
    unittest.main()
