-- cellkeep: kind=expand needs=0.1.0
-- Converts stored keys of e-mails and names to the folding that treats σ and ς, or µ and μ, as one letter. It
-- writes only rows whose key changes. ASCII keys never change and are recognised by their length in bytes.

-- Maps the letters that the earlier folding left unchanged to their new form.
create or replace function case_fold_0009(key text) returns text
language sql immutable parallel safe
as $$ select translate(key,
  U&'ABCDEFGHIJKLMNOPQRSTUVWXYZ'
  '\00B5\00C6\0126\017F\018E\0190\0222\038E\0391\0392\0393\0394\0395\0396\0397\0398\0399'
  '\039A\039B\039C\039D\039E\039F\03A0\03A1\03A3\03A4\03A5\03A6\03A7\03A8\03A9\03AB\03C2'
  '\03D0\03D1\03D5\03D6\03DC\03F0\03F1\03F5\1C80\1C81\1C82\1C83\1C84\1C85\1C86\1C87\1C88'
  '\1E9B\FB05',
  U&'abcdefghijklmnopqrstuvwxyz'
  '\03BC\00E6\0127s\01DD\025B\0223\03CD\03B1\03B2\03B3\03B4\03B5\03B6\03B7\03B8\03B9'
  '\03BA\03BB\03BC\03BD\03BE\03BF\03C0\03C1\03C3\03C4\03C5\03C6\03C7\03C8\03C9\03CB\03C3'
  '\03B2\03B8\03C6\03C0\03DD\03BA\03C1\03B5\0432\0434\043E\0441\0442\0442\044A\0463\A64B'
  '\1E61\FB06') $$;

-- True for a key with one of those letters that an already folded key may contain.
create or replace function case_folds_0009(key text) returns boolean
language sql immutable parallel safe
as $$ select octet_length(key) > length(key) and key ~
  U&'[\00B5\017F\0345\03C2\03D0\03D1\03D5\03D6\03F0\03F1\03F5\1C80-\1C88\1E9B\FB05]' $$;

-- U+0345 counts as a letter only if it stands alone, so it is replaced after composition.
create or replace function email_key_0009(key text) returns text
language sql immutable parallel safe
as $$ select normalize(replace(case_fold_0009(key), U&'\0345', U&'\03B9'), NFC) $$;

-- Decomposes first: a compatibility variant may stand for an accented capital.
create or replace function name_key_0009(key text) returns text
language sql immutable parallel safe
as $$ select normalize(replace(
  normalize(case_fold_0009(normalize(key, NFKD)), NFKC), U&'\0345', U&'\03B9'), NFKC) $$;

lock table account, invite in share row exclusive mode;

-- E-mails of several accounts may now have the same key. One account keeps it: a live before a deleted one, a
-- verified before an unverified address, then the oldest. The others lose only the login by e-mail: their
-- keys get a leading space, which no address has, and `cellkeep doctor` lists them.
create temporary table account_key_0009 on commit drop as
with changing as (
  select id, email_key_0009(email_key) as key from account where case_folds_0009(email_key)
), claiming as (
  select id, key from changing
  union all
  select a.id, a.email_key from account a
  where a.email_key in (select key from changing) and not case_folds_0009(a.email_key)
)
select c.id, c.key, row_number() over (
    partition by c.key
    order by (a.deleted_at is not null), a.email_verified desc, a.created_at, a.id) as place
from claiming c join account a on a.id = c.id;

update account a set email_key = ' ' || a.email_key
from account_key_0009 k where k.id = a.id and k.place > 1;

update account a set email_key = k.key
from account_key_0009 k where k.id = a.id and k.place = 1 and a.email_key <> k.key;

-- The same for open invites, unexpired ones first; claimed ones need not be unique.
create temporary table invite_key_0009 on commit drop as
with changing as (
  select id, email_key_0009(email_key) as key from invite
  where claimed_at is null and case_folds_0009(email_key)
), claiming as (
  select id, key from changing
  union all
  select i.id, i.email_key from invite i
  where i.claimed_at is null and i.email_key in (select key from changing) and not case_folds_0009(i.email_key)
)
select c.id, c.key, row_number() over (
    partition by c.key order by coalesce(i.expires_at <= now(), false), i.created_at, i.id) as place
from claiming c join invite i on i.id = c.id;

update invite i set email_key = ' ' || i.email_key
from invite_key_0009 k where k.id = i.id and k.place > 1;

update invite i set email_key = k.key
from invite_key_0009 k where k.id = i.id and k.place = 1 and i.email_key <> k.key;

update invite set email_key = email_key_0009(email_key)
where claimed_at is not null and case_folds_0009(email_key);

update actor set name_key = name_key_0009(name_key)
where octet_length(name_key) > length(name_key)
  and (case_folds_0009(name_key) or name_key is not nfkc normalized)
  and name_key <> name_key_0009(name_key);

drop function name_key_0009, email_key_0009, case_folds_0009, case_fold_0009;
