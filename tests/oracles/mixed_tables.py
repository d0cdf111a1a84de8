"""Tables that books and programs on mixed models use."""

from __future__ import annotations

import numpy as np
import pandas as pd

# Diameters in mm of 24 plates (rows) and 6 samples: Davies and Goldsmith, Statistical Methods in
# Research and Production, 1972, section 6.6.
PENICILLIN = """
    27 23 26 23 23 21  27 23 26 23 23 21  25 21 25 24 24 20  26 23 25 23 23 20
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
# Yield in g of standard colour of 6 batches (rows) of dyestuff: Davies and Goldsmith, section 6.4.
DYESTUFF = """
    1545 1440 1440 1520 1580
    1540 1555 1490 1560 1495
    1595 1550 1605 1510 1560
    1445 1440 1595 1465 1545
    1595 1630 1515 1635 1625
    1520 1455 1450 1480 1445
"""
# Strength of a paste: of 10 batches 3 casks each, of which each has 2 samples: the same, 6.5.
PASTES = """
    62.8 62.6 60.1 62.3 62.7 63.1 60 61.4 57.5 56.9 61.1 58.9
    58.7 57.5 63.9 63.1 65.4 63.7 57.1 56.4 56.9 58.6 64.7 64.5
    55.1 55.1 54.7 54.2 58.8 57.5 63.4 64.9 59.3 58.1 60.5 60
    62.5 62.6 61 58.7 56.9 57.7 59.2 59.4 65.2 66 64.8 64.1
    54.8 54.8 64 64 57.7 56.8 58.3 59.3 59.2 59.2 58.9 56.6
"""
# Herd, period, new cases and animals of lung disease in cattle: Lesnoff et al., Preventive
# Veterinary Medicine 63, 2004.
CATTLE = """
    1,1,2,14 1,2,3,12 1,3,4,9 1,4,0,5 2,1,3,22 2,2,1,18 2,3,1,21 3,1,8,22 3,2,2,16
    3,3,0,16 3,4,2,20 4,1,2,10 4,2,0,10 4,3,2,9 4,4,0,6 5,1,5,18 5,2,0,25 5,3,0,24
    5,4,1,4 6,1,3,17 6,2,0,17 6,3,0,18 6,4,1,20 7,1,8,16 7,2,1,10 7,3,3,9 7,4,0,5
    8,1,12,34 9,1,2,9 9,2,0,6 9,3,0,8 9,4,0,6 10,1,1,22 10,2,1,22 10,3,0,18 10,4,2,22
    11,1,0,25 11,2,5,27 11,3,3,22 11,4,1,22 12,1,2,10 12,2,1,8 12,3,0,6 12,4,0,5 13,1,1,21
    13,2,2,24 13,3,0,19 13,4,0,23 14,1,11,19 14,2,0,2 14,3,0,3 14,4,0,2 15,1,1,19 15,2,1,15
    15,3,1,15 15,4,0,15
"""
# Ratings 1 to 5 of the bitterness of wine by 9 judges (rows), two bottles each of cold and warm
# without and with contact of juice and skins: Randall, Biometrical Journal 7, 1989.
WINE = "23344455 12132354 23325544 32323253 23433333 32322454 11222323 22233334 12323244"
# Seizures of 59 epileptics in four periods of two weeks, the first 28 on a placebo; their seizures
# in eight weeks before, and ages: Thall and Vail, Biometrics 46, 1990.
SEIZURES = """
    5 3 3 3 3 5 3 3 2 4 0 5 4 4 1 4 7 18 9 21 5 2 8 7 6 4 0 2 40 20 21 12 5 6 6 5 14 13 6 0 26
    12 6 22 12 6 8 4 4 4 6 2 7 9 12 14 16 24 10 9 11 0 0 5 0 0 3 3 37 29 28 29 3 5 2 5 3 0 6 7 3
    4 3 4 3 4 3 4 2 3 3 5 8 12 2 8 18 24 76 25 2 1 2 1 3 1 4 2 13 15 13 12 11 14 9 8 8 7 9 4 0 4
    3 0 3 6 1 3 2 6 7 4 4 3 1 3 22 17 19 16 5 4 7 4 2 4 0 4 3 7 7 7 4 18 2 5 2 1 1 0 0 2 4 0 5 4
    0 3 11 14 25 15 10 5 3 8 19 7 6 7 1 1 2 3 6 10 8 8 2 1 0 0 102 65 72 63 4 3 2 4 8 6 5 7 1 3
    1 5 18 11 28 13 6 3 4 0 3 5 4 3 1 23 19 8 2 3 0 1 0 0 0 0 1 4 3 2
"""
SEIZURES_BEFORE = """
    11 11 6 8 66 27 12 52 23 10 52 33 18 42 87 50 18 111 18 20 12 9 17 28 55 9 10 47 76 38 19 10
    19 24 31 14 11 67 41 7 22 13 46 36 38 7 36 11 151 22 41 32 56 24 16 22 25 13 12
"""
AGES = """
    31 30 25 36 22 29 31 42 37 28 36 24 23 36 26 26 28 31 32 21 29 21 32 25 30 40 19 22 18 32 20
    30 18 24 30 35 27 20 22 28 23 40 33 21 35 25 26 25 22 32 25 35 21 41 32 26 21 36 37
"""


def make_penicillin() -> pd.DataFrame:
    """Diameters of 24 plates and 6 samples, crossed."""
    plate, sample = np.repeat(np.arange(24), 6), np.tile(np.arange(6), 24)
    return pd.DataFrame({"y": read(PENICILLIN), "plate": plate, "sample": sample})


def make_sleep() -> pd.DataFrame:
    """Reaction times of 18 subjects on 10 days."""
    subject, days = np.repeat(np.arange(18), 10), np.tile(np.arange(10.0), 18)
    return pd.DataFrame({"y": read(SLEEP), "days": days, "subject": subject})


def make_wine() -> pd.DataFrame:
    """Ratings 0 to 4 of bottles by 9 judges."""
    return pd.DataFrame(
        {
            "y": [int(one) - 1 for one in "".join(WINE.split())],
            "temp": np.tile(np.repeat(["cold", "warm"], 4), 9),
            "contact": np.tile(np.repeat(["no", "yes"], 2), 18),
            "judge": np.repeat(np.arange(9), 8),
        }
    )


def make_epileptics() -> pd.DataFrame:
    """Seizures of 59 epileptics in four periods."""
    return pd.DataFrame(
        {
            "y": read(SEIZURES),
            "base": np.repeat(np.log(read(SEIZURES_BEFORE) / 4.0), 4),
            "age": np.repeat(np.log(read(AGES)), 4),
            "treated": np.repeat(np.arange(59) >= 28, 4).astype(float),
            "last": np.tile([0.0, 0.0, 0.0, 1.0], 59),
            "subject": np.repeat(np.arange(59), 4),
        }
    )


def make_dyestuff() -> pd.DataFrame:
    """Yields of 6 batches."""
    return pd.DataFrame({"y": read(DYESTUFF), "batch": np.repeat(list("ABCDEF"), 5)})


def make_pastes() -> pd.DataFrame:
    """Strengths of casks within batches."""
    batch, cask = np.repeat(list("ABCDEFGHIJ"), 6), np.tile(np.repeat(list("abc"), 2), 10)
    return pd.DataFrame({"y": read(PASTES), "batch": batch, "cask": cask})


def make_cattle() -> pd.DataFrame:
    """New cases of animals, by herd and period."""
    rows = np.array([row.split(",") for row in CATTLE.split()], dtype=int)
    return pd.DataFrame(rows, columns=["herd", "period", "cases", "animals"])


def read(table: str) -> np.ndarray:
    """The numbers of a table, row by row."""
    return np.array(table.split(), dtype=float)
