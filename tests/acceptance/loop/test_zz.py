from __future__ import annotations
import os, pathlib, pytest, json, signal, subprocess
from skill_effectiveness.acceptance.loop.words import Outcome
from skill_effectiveness.acceptance.loop import *
from skill_effectiveness.acceptance.loop.runner import run_jobs
from skill_effectiveness.acceptance.loop.config import read_config
from skill_effectiveness.execution.worktree import PlacedWorktree
WRITE = "pathlib.Path('value').write_text(str(call))\n"
def show(r, s): print("\nSUMMARY", s.outcome, s.reason, [j.reason for j in s.jobs]); print([(e['type'], e.get('reason'), e.get('exit')) for e in r.seen if e['type'] in ('attempt_finished','check_result','worker_exited','verdict')])
def try_(repository, worker=WRITE, reviewer=None, top=None, **k):
    k.setdefault('checks',['true']); k.setdefault('maxAttempts',1)
    before=repository.state()
    data=json.dumps({'repo':str(top or repository.root),'jobs':[repository.job(worker, reviewer, **k)]}).encode()
    try: s=run_jobs(read_config(data), around=repository.around, observer=repository.seen.append)
    except LoopRefusedError as e: print('REFUSED',e); return
    show(repository,s)
    if k.get('isolate',True): assert repository.state()==before
    return s
@pytest.mark.parametrize('iso',[True,False])
def test_sparse(repository,iso):
    repository.commit(**{'a/x':'1','b/y':'2'}); repository.git('sparse-checkout','set','a'); try_(repository,isolate=iso)
@pytest.mark.parametrize('iso',[True,False])
def test_crlf(repository,iso):
    repository.git('config','core.autocrlf','false'); repository.commit(crlf='a\r\nb\r\n'); repository.git('config','core.autocrlf','true'); 
    repository.write('n','a\n'); repository.git('add','-A'); repository.git('commit','-qm','n'); print(repository.git('status','--short')); try_(repository,isolate=iso)
@pytest.mark.parametrize('iso',[True,False])
def test_textattr(repository,iso):
    repository.commit(crlf='a\r\nb\r\n'); repository.commit(**{'.gitattributes':'* text\n'}); print(repository.git('status','--short')); try_(repository,isolate=iso)
@pytest.mark.parametrize('iso',[True,False])
def test_lfs(repository,iso):
    repository.git('config','filter.up.clean','tr a-z A-Z'); repository.git('config','filter.up.smudge','tr A-Z a-z'); repository.git('config','filter.up.required','true')
    repository.commit(**{'.gitattributes':'*.up filter=up\n','x.up':'abc'}); try_(repository,isolate=iso, worker=WRITE+"pathlib.Path('x.up').write_text('def')\n", checks=['grep -q def x.up'])
@pytest.mark.parametrize('iso',[True,False])
def test_sub(repository,iso):
    o=repository.base/'o'; subprocess.run(['git','init','-q',str(o)],check=True); subprocess.run(['git','-C',str(o),'-c','user.name=n','-c','user.email=n','commit','-q','--allow-empty','-m','x'],check=True)
    repository.git('-c','protocol.file.allow=always','submodule','add','-q',str(o),'sub'); repository.commit(); try_(repository,isolate=iso)
@pytest.mark.parametrize('iso',[True,False])
def test_linked(repository,iso):
    l=repository.base/'l'; repository.git('worktree','add','-q','-b','z',str(l)); try_(repository,top=l,isolate=iso)
def test_detached(repository):
    repository.git('checkout','-q','--detach'); try_(repository); try_(repository,isolate=False)
def test_shallow(repository):
    repository.commit(); repository.commit(); s=repository.base/'s'; repository.git('clone','-q','--depth','1',f'file://{repository.root}',str(s)); try_(repository,top=s)
def test_partial(repository):
    repository.git('config','uploadpack.allowFilter','true');repository.commit(a='x');s=repository.base/'s'; repository.git('clone','-q','--filter=blob:none',f'file://{repository.root}',str(s)); try_(repository,top=s)
def test_sha256(repository):
    s=repository.base/'s'; subprocess.run(f"git init -q --object-format=sha256 {s}; cd {s}; echo v>value; git add .; git -c user.name=n -c user.email=n commit -qm x",shell=True,check=True); try_(repository,top=s)
def test_bare(repository):
    s=repository.base/'s'; repository.git('clone','-q','--bare',str(repository.root),str(s)); try_(repository,top=s)
def test_gitlink_sym(repository):
    os.rename(repository.root/'.git', repository.base/'gd'); os.symlink(repository.base/'gd', repository.root/'.git'); try_(repository)
def test_assume(repository):
    repository.git('update-index','--assume-unchanged','value'); (repository.root/'value').write_text('hidden'); try_(repository); try_(repository,isolate=False)
def test_ident(repository):
    repository.commit(**{'.gitattributes':'* ident\n','i':'$Id$\n'}); try_(repository,isolate=False)
class TestSig:
    def test_clean(self, repository, monkeypatch):
        old=PlacedWorktree.remove
        def rm(self): signal.raise_signal(signal.SIGINT); return old(self)
        monkeypatch.setattr(PlacedWorktree,'remove',rm)
        s=try_(repository,checks=['false']); assert s.outcome is Outcome.ABORTED and s.jobs[0].outcome is Outcome.EXHAUSTED, s
        assert list(repository.temporary.iterdir())==[]; print(repository.types()[-4:])
    def test_make(self, repository, monkeypatch):
        old=PlacedWorktree.make
        def mk(self): old(self); signal.raise_signal(signal.SIGINT)
        monkeypatch.setattr(PlacedWorktree,'make',mk)
        s=try_(repository,checks=['false']); assert s.outcome is Outcome.ABORTED, s
        assert list(repository.temporary.iterdir())==[]; print(repository.types()[-4:], s.jobs)
    def test_make2(self, repository, monkeypatch):
        def mk(self): raise KeyboardInterrupt
        monkeypatch.setattr(PlacedWorktree,'make',mk)
        s=try_(repository,checks=['false']); assert s.outcome is Outcome.ABORTED, s
        assert list(repository.temporary.iterdir())==[]; print(repository.types()[-4:], s.jobs)
    def test_fin(self, repository, monkeypatch):
        from skill_effectiveness.acceptance.loop.runner import OpenRun
        old=OpenRun.finished
        def fin(self,*a): signal.raise_signal(signal.SIGINT); return old(self,*a)
        monkeypatch.setattr(OpenRun,'finished',fin)
        s=try_(repository); assert s.outcome is Outcome.PASSED; assert repository.types().count('run_finished')==1
