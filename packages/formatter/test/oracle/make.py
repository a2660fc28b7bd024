"""Makes the fixtures beside it with Python's csv and dateutil: `python3 make.py`. They are kept, so that the suite needs no Python."""
import csv, io, json, random
from datetime import datetime
from pathlib import Path

random.seed(7)
here = Path(__file__).parent

def texts():
    yield from ['a,b\n1,2', '"x,1","y ""q"""\nz,w', 'a"b,c\n', '"a"b,c', '\n\na,b\n', '"",""\n', 'a,\n', ',\n', '"a\nb",c\r\nd,e', "a\rb", '""\n', ' "a",b']
    for _ in range(300):
        yield "".join(random.choice('ab",\n\r ;') for _ in range(random.randint(1, 14)))

rows = []
for text in texts():
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    try:
        read = [row for row in csv.reader(io.StringIO(text, newline=""), strict=False) if row]
    except csv.Error:
        continue
    # An open quote is an error of ours, and the end of the text for Python.
    rows.append({"text": text, "rows": read})
(here / "csv.json").write_text(json.dumps(rows, indent=1) + "\n")

try:
    from dateutil.relativedelta import relativedelta
except ImportError:
    raise SystemExit("dateutil is not installed: dates.json is left as it is")
dates = []
for _ in range(300):
    start = datetime(random.randint(1950, 2090), random.randint(1, 12), random.randint(1, 28), random.randint(0, 23), random.randint(0, 59))
    start += relativedelta(days=random.randint(0, 3))
    shift = {unit: random.randint(-40, 40) for unit in random.sample(["years", "months", "weeks", "days", "hours", "minutes"], random.randint(1, 4))}
    end = start + relativedelta(**shift)
    expression = " ".join(f"{amount:+d} {unit}" for unit, amount in shift.items())
    dates.append({"start": start.isoformat(), "expression": expression, "end": end.strftime("%Y-%m-%dT%H:%M:%S"), "weekday": end.isoweekday(), "week": end.isocalendar()[1], "ordinal": end.timetuple().tm_yday})
(here / "dates.json").write_text(json.dumps(dates, indent=1) + "\n")
