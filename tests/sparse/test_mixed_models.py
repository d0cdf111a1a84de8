"""Variance components of mixed models, beside known answers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from posterity.sparse import SparseLinearRegression

# Diameters in mm of 24 plates (rows) and 6 samples: Davies and Goldsmith, Statistical Methods in
# Research and Production, 1972, section 6.6.
PENICILLIN = """
    27 23 26 23 23 21  27 23 26 23 23 21  25 21 25 24 24 20  26 23 26 23 23 20
    25 22 26 22 23 20  24 22 25 23 22 19  24 20 23 21 22 19  26 22 26 24 24 21
    24 21 24 22 22 20  24 21 24 23 22 19  26 23 26 24 24 21  25 22 26 24 24 20
    26 24 26 24 25 22  26 23 26 23 23 20  26 23 25 24 24 22  25 22 25 23 23 20
    25 21 24 23 23 20  25 22 24 23 23 19  24 21 23 21 21 19  26 23 26 24 24 21
    25 21 24 22 22 18  25 22 25 22 22 20  24 21 24 22 24 19  24 21 24 22 21 18
"""
# Mean reaction times in ms of 18 subjects (rows) after 0 to 9 days of little sleep: Belenky et al.,
# Journal of Sleep Research 12, 2003.
SLEEP = """
    249.5600 258.7047 250.8006 321.4398 356.8519 414.6901 382.2038 290.1486 430.5853 466.3535
    222.7339 205.2658 202.9778 204.7070 207.7161 215.9618 213.6303 217.7272 224.2957 237.3142
    199.0539 194.3322 234.3200 232.8416 229.3074 220.4579 235.4208 255.7511 261.0125 247.5153
    321.5426 300.4002 283.8565 285.1330 285.7973 297.5855 280.2396 318.2613 305.3495 354.0487
    287.6079 285.0000 301.8206 320.1153 316.2773 293.3187 290.0750 334.8177 293.7469 371.5811
    234.8606 242.8118 272.9613 309.7688 317.4629 309.9976 454.1619 346.8311 330.3003 253.8644
    283.8424 289.5550 276.7693 299.8097 297.1710 338.1665 332.0265 348.8399 333.3600 362.0428
    265.4731 276.2012 243.3647 254.6723 279.0244 284.1912 305.5248 331.5229 335.7469 377.2990
    241.6083 273.9472 254.4907 270.8021 251.4519 254.6362 245.4523 235.3110 235.7541 237.2466
    312.3666 313.8058 291.6112 346.1222 365.7324 391.8385 404.2601 416.6923 455.8643 458.9167
    236.1032 230.3167 238.9256 254.9220 250.7103 269.7744 281.5648 308.1020 336.2806 351.6451
    256.2968 243.4543 256.2046 255.5271 268.9165 329.7247 379.4445 362.9184 394.4872 389.0527
    250.5265 300.0576 269.8939 280.5891 271.8274 304.6336 287.7466 266.5955 321.5418 347.5655
    221.6771 298.1939 326.8785 346.8555 348.7402 352.8287 354.4266 360.4326 375.6406 388.5417
    271.9235 268.4369 257.2424 277.6566 314.8222 317.2135 298.1353 348.1229 340.2800 366.5131
    225.2640 234.5235 238.9008 240.4730 267.5373 344.1937 281.1481 347.5855 365.1630 372.2288
    269.8804 272.4428 277.8989 281.7895 279.1705 284.5120 259.2658 304.6306 350.7807 369.4692
    269.4117 273.4740 297.5968 310.6316 287.1726 329.6076 334.4818 343.2199 369.1417 364.1236
"""


def components(model: SparseLinearRegression) -> dict[str, float]:
    """Standard deviations of the noise and of each column's effects."""
    posterior = model._posterior
    noise = float(np.sqrt(posterior.rates[0] / posterior.shape))
    return {"noise": noise, **{k: noise * scale for k, scale in model.prior_scales_.items()}}


def test_crossed_effects_of_a_balanced_table() -> None:
    """Restricted maximum likelihood is then the analysis of variance (Searle et al. 1992)."""
    y = np.array(PENICILLIN.split(), dtype=float)
    rows = pd.DataFrame({"plate": np.repeat(np.arange(24), 6), "sample": np.tile(np.arange(6), 24)})
    model = SparseLinearRegression(categorical_features="all").fit(rows, y)
    found = components(model)
    table = y.reshape(24, 6)
    plates, samples = table.mean(axis=1), table.mean(axis=0)
    residuals = table - plates[:, None] - samples + y.mean()
    noise = np.sum(residuals**2) / (23 * 5)
    plate, sample = plates.var(ddof=1) - noise / 6, samples.var(ddof=1) - noise / 24
    assert found["noise"] ** 2 == pytest.approx(noise, rel=1e-4)
    assert found["plate"] ** 2 == pytest.approx(plate, rel=1e-4)
    assert found["sample"] ** 2 == pytest.approx(sample, rel=1e-4)
    assert model.intercept_ == pytest.approx(y.mean())
    std = np.sqrt(model._marginals()[1][0]) * found["noise"]
    assert std**2 == pytest.approx(plate / 24 + sample / 6 + noise / 144, rel=1e-4)


def test_subjects_of_the_sleep_study() -> None:
    """lmer(Reaction ~ Days + (1|Subject)): standard deviations of 37.124 and 30.991."""
    y = np.array(SLEEP.split(), dtype=float)
    rows = pd.DataFrame({"subject": np.repeat(np.arange(18), 10), "days": np.tile(range(10), 18)})
    model = SparseLinearRegression(categorical_features=["subject"]).fit(rows, y)
    found = components(model)
    assert found["noise"] == pytest.approx(30.991, rel=1e-4)
    assert found["subject"] == pytest.approx(37.124, rel=1e-4)
    slope = model.summary().loc["days"]
    assert slope["mean"] == pytest.approx(10.467, rel=2e-3)
    assert slope["sd"] == pytest.approx(0.804, rel=5e-3)
