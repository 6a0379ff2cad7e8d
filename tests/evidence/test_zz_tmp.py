from tests.support.journals import *
def test_x(tmp_path):
  for form in FORMS:
   for cutrow in (1,2,3):
    b=tmp_path/f"{form}{cutrow}"; b.mkdir()
    d=Desk(b.resolve(), form)
    d.fill(4,1) if hasattr(d,'fill') else None
    raw=d.rows().read_bytes().splitlines(keepends=True)
    print(form, cutrow, len(raw), [len(r) for r in raw])
    keep=len(raw)-cutrow
    d.rows().write_bytes(b"".join(raw[:keep])+raw[keep][:-10])
    r=d.verify(); print(r.status, r.findings, r.torn_bytes)
    try: print("repin", d.repin("why").status)
    except Exception as e: print(type(e).__name__, e)
    try:
        with d.open() as j: print("opens")
    except Exception as e: print(type(e).__name__, e)
  assert 0
