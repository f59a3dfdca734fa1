"""What `log`, `compare` and `status` say inside a campaign."""

import unittest

from measuring_fixture import CANARY, CampaignLab
from support import run_cli


class Marks(CampaignLab):
    def test_log_compare_and_status_know_the_campaign_of_a_run(self):
        self.begin()
        self.kaizen("idea", "add", "--hypothesis", "if so then better", "--category", "prompt", "--label", "dates")
        self.variant("v001", 0.97)
        self.screen("v001", "--idea", "i1")
        self.kaizen("replicate", "v001")
        told = self.kaizen("log")
        rows = {row["id"]: row["campaign"] for row in told["runs"]}
        body = self.bodies("screen")[0]
        mark = rows[body["run"]]
        self.assertEqual((mark["stage"], mark["idea"], mark["label"]), ("screen", "i1", "dates"))
        self.assertAlmostEqual(mark["z"], body["z"], 6)
        self.assertEqual((mark["verdict"], mark["decision"]), ("promising", None))
        self.assertEqual((told["campaigns"][0]["leader"]["variant"], told["campaigns"][0]["variants"]), ("baseline", 1))
        text = run_cli("log").stdout
        for words in ("c1 screen, i1, dates, z +", "c1 leader", "c1 reference", "c1 luck line"):
            self.assertIn(words, text)

        sides = self.bodies("replicate")[0]["runs"]
        found = self.kaizen("compare", sides["leader"][0], sides["candidate"][0])
        self.assertGreater(found["e_value"]["better"], 1)
        self.assertLess(found["e_value"]["worse"], 1)
        self.assertEqual(found["guards"], [])
        self.variant("v002", 0.6)
        self.screen("v002")
        best = self.kaizen("compare", self.bodies("noise")[0]["runs"][0], body["run"])
        self.assertIn("the best of 2 variants", " ".join(best["notes"]))
        other = self.kaizen("compare", self.bodies("noise")[0]["runs"][0], self.bodies("screen")[1]["run"])
        self.assertNotIn("the best of", " ".join(other["notes"]))

        status = self.kaizen("status")
        self.assertEqual((status["campaigns"], status["next"]), ([{"id": "c1", "system": "demo"}], "kaizen next --json"))
        self.assertNotIn(CANARY, text + run_cli("status").stdout)


if __name__ == "__main__":
    unittest.main()
