// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these strings are source code.

import type { Group } from './mutants-table.ts'

const weak = (file: string, ...mutant: [text: string, by: string]): Group => ({
  ...{ file, tests: ['src/sign-in/weak-session.test.ts'], mutants: [mutant] },
})

/** Mutants of passkeys, second factors, e-mail and one-time links. */
export const signInGroups: Group[] = [
  {
    file: 'src/passkeys/webauthn.ts',
    tests: ['src/passkeys/webauthn.test.ts', 'src/passkeys/passkeys.test.ts'],
    mutants: [
      ['(await isFramed(response)) || ', ''],
      ['|| !(await isPlain(response))) return', ') return'],
      ['|| (await isFramed(response))) return undefined', ') return undefined'],
      ['crossOrigin !== false || ', ''],
      ['|| topOrigin !== undefined', ''],
      ['return isWhole && (', 'return ('],
      ['registrationInfo.credential.id !== response.id', 'false'],
      [`type === 'multiDevice' ? 'synced' : 'single'`, `'synced'`],
    ],
  },
  {
    file: 'src/passkeys/passkeys.ts',
    tests: ['src/passkeys/passkeys.test.ts', 'src/passkeys/webauthn.test.ts'],
    mutants: [
      ['and deleted_at is null', ''],
      ['|| challenge === null', '', 'no response has the challenge null'],
      ['|| !isOwner', ''],
      ['|| proven.device !== device', ''],
      ['and (counter < ${counter} or (counter = 0 and ${counter}::bigint = 0))', ''],
      ['or (counter = 0 and ${counter}::bigint = 0)', ''],
      ['${counter}::bigint = 0', '${counter} = 0'],
      [`await notify(app, work, account_id, 'passkey_counter')`, ''],
    ],
  },
  {
    file: 'src/passkeys/passkey_finish.ts',
    tests: ['src/passkeys/passkeys.test.ts'],
    mutants: [
      ['proven?.first_factor && ', ''],
      ['proven.is_verified && ', ''],
      ['&& response.response.userHandle', ''],
      [`if (used !== 'used')`, `if (used === 'gone')`],
      ['await hold.ip()', ''],
    ],
  },
  {
    file: 'src/passkeys/second-step.ts',
    tests: ['src/passkeys/second-step.test.ts'],
    mutants: [
      ['!proven?.second_factor', '!proven'],
      ['|| proven.account_id !== account_id', ''],
      [`=== 'used'`, `!== 'gone'`],
      ['sql`second_factor`', 'sql`true`'],
    ],
  },
  {
    file: 'src/passkeys/account_passkey_register_finish.ts',
    tests: ['src/passkeys/passkeys.test.ts', 'src/passkeys/second-step.test.ts'],
    mutants: [
      ['|| !is_verified', ''],
      [`throw committed(fail('passkey_refused'))`, `throw fail('passkey_refused')`],
      ['if (count >= passkeysMax)', 'if (false)'],
      ['and expires_at > statement_timestamp()', ''],
      [`await db.run(strengthen(credential.id, 'passkey'))`, ''],
    ],
  },
  {
    file: 'src/passkeys/account_passkey_remove.ts',
    tests: ['src/passkeys/passkeys.test.ts', 'src/passkeys/second-step.test.ts'],
    mutants: [
      ['where id = ${passkey_id} and account_id = ${account_id}::uuid', 'where id = ${passkey_id}'],
      ['removed.admits && ways.length === 0', 'false'],
      [' and rp_id = ${app.config.rp_id} as admits', ' as admits'],
      ['if (removed.second_factor) await', 'if (false) await'],
    ],
  },
  {
    file: 'src/passkeys/account_passkey_rename.ts',
    tests: ['src/passkeys/passkeys.test.ts'],
    mutants: [['and account_id = ${account.id}::uuid', '']],
  },
  {
    file: 'src/passkeys/renew.ts',
    tests: ['src/passkeys/passkeys.test.ts', 'src/sign-in/reauthenticate.test.ts'],
    mutants: [
      ['if (session_id !== context.credential.id)', 'if (false)'],
      ['|| proven.account_id !== account.id', ''],
      ['|| !proven.is_verified', ''],
    ],
  },
  {
    file: 'src/second-factor/second_factor.ts',
    tests: ['src/second-factor/second_factor.test.ts', 'src/second-factor/races.test.ts'],
    mutants: [
      ['and attempts < ${attemptsMax}', ''],
      ['const isLast = flow.attempts >= attemptsMax', 'const isLast = false'],
      ['isLast || flow.tries >= attemptsMax', 'isLast'],
      ['&& !(await wasNotified(context, work, account_id))', ''],
      ['if (session_id !== null && session_id !== presentedId(carriers)) return false', ''],
      ['|| (await holdSession(db, account_id, session_id))', '|| true'],
      ['await hold.account(accountKey(flow.account_id))', ''],
      ['!isLive || ', '', 'the deletion of an account ends its flows'],
    ],
  },
  {
    file: 'src/second-factor/totp.ts',
    tests: ['src/second-factor/totp.test.ts', 'src/second-factor/second_factor.test.ts'],
    mutants: [
      ['and last_step < ${step}', ''],
      ['and confirmed_at is not null', ''],
      ['[present - 1, present, present + 1]', '[present]'],
      ['[present - 1, present, present + 1]', '[present - 2, present - 1, present, present + 1]'],
      ['.at(-1)', '.at(0)'],
    ],
  },
  {
    file: 'src/second-factor/recovery-codes.ts',
    tests: ['src/second-factor/second_factor.test.ts', 'src/second-factor/account_totp.test.ts'],
    mutants: [
      ['where account_id = ${account_id}::uuid and code_hash', 'where code_hash'],
      [`.replaceAll('O', '0')`, ''],
      ['with earlier as (${removal(account_id)})', 'with earlier as (select)'],
    ],
  },
  {
    file: 'src/second-factor/account_totp_confirm.ts',
    tests: ['src/second-factor/account_totp.test.ts', 'src/second-factor/second_factor.test.ts'],
    mutants: [
      ['and session_id = ${credential.id}', ''],
      ['and created_at > statement_timestamp() - ${pendingFor}', ''],
      [', last_step = ${step}', ''],
    ],
  },
  {
    file: 'src/second-factor/factors.ts',
    tests: [
      'src/second-factor/account_totp.test.ts',
      'src/second-factor/admin_account_factors_clear.test.ts',
      'src/sign-in/policy.test.ts',
    ],
    mutants: [
      ['if (active) return', ''],
      ['required && byOwner', 'false'],
      ['required && byOwner', 'required'],
      ['if ((await removeCodes(db, account_id)) > 0)', 'if (true)'],
    ],
  },
  {
    file: 'src/email/account_email_change.ts',
    tests: ['src/email/email.test.ts'],
    mutants: [
      [`await notify(app, work, own.id, 'email_change_requested')`, ''],
      ['own.email !== null', 'true'],
      ['t.email_key is distinct from', 't.email_key is not distinct from'],
      ['fresh: true', 'fresh: false'],
    ],
  },
  {
    file: 'src/email/email_confirm.ts',
    tests: ['src/email/email.test.ts', 'src/tickets/tickets.test.ts'],
    mutants: [
      ['await useTicket(work.db, ticket)', ''],
      [`['email_verify', 'email_change'])`, `['email_verify', 'email_change', 'password_reset'])`],
      ['verified: true', 'verified: false'],
    ],
  },
  {
    file: 'src/tickets/redeem.ts',
    tests: [
      'src/tickets/tickets.test.ts',
      'src/recovery/reset.test.ts',
      'src/email/email.test.ts',
      'src/invites/invite-links.test.ts',
    ],
    mutants: [
      ['and t.purpose = any(${[...purposes]}::text[]) and', 'and'],
      [
        'account.deleted_at is null and ${isAddressed}',
        '${isAddressed}',
        'the deletion of an account ends its tickets',
      ],
      [
        'account.deleted_at is null and ${isAddressed}',
        'account.deleted_at is null',
        'a change of the address ends what was mailed to the old one',
      ],
      ['invite.claimed_at is null and ', '', 'a claim ends every link of its invite'],
      [
        'set used_at = now() where t.id = ${id}::uuid and ${isOpen}',
        'set used_at = now() where t.id = ${id}::uuid',
      ],
      ['if (used === 0) throw', 'if (false) throw'],
      ['await hold.ip()', ''],
    ],
  },
  {
    file: 'src/tickets/tickets.ts',
    tests: [
      'src/tickets/tickets.test.ts',
      'src/recovery/reset.test.ts',
      'src/email/email.test.ts',
      'src/invites/invite-links.test.ts',
      'src/recovery/promotion.test.ts',
    ],
    mutants: [
      [`(t.created_by is not null or t.delivery = 'mailed')`, 'true'],
      [`(t.created_by is not null or t.delivery = 'mailed')`, 't.created_by is not null'],
      ['t.used_at is null and ', ''],
      ['t.voided_at is null and ', ''],
      ['and t.expires_at > statement_timestamp()', ''],
      ['offset ${sql.raw(openMax - 1)}', 'offset ${sql.raw(openMax)}'],
      [`interval '1 second', until)`, `interval '1 second')`],
    ],
  },
  {
    file: 'src/accounts/locks.ts',
    tests: ['src/sessions/ended-meanwhile.test.ts'],
    mutants: [['${live} for no key update', '${live}']],
  },
  weak('src/accounts/locks.ts', 'await requireFresh(app, db.rows, { account, credential })', ''),
  weak('src/accounts/password.ts', 'if (verified === noPassword) await', 'if (false) await'),
  weak('src/oidc/link.ts', 'if (!isEnough) throw', 'if (false) throw'),
  weak('src/sign-in/flow.ts', 'and confirmed_at is null', 'and confirmed_at is null and false'),
  {
    file: 'src/wire/address.ts',
    tests: ['src/delivery/smtp.test.ts'],
    mutants: [
      ['return ascii === written || domainToUnicode(ascii) === written', 'return true'],
      ['|| domainToUnicode(ascii) === written', ''],
      ['ascii === written ||', ''],
    ],
  },
  {
    file: 'src/roles/grants.ts',
    tests: ['src/recovery/promotion.test.ts'],
    mutants: [
      ['builtinRoles.includes(role)', `role === 'keeper'`],
      ['builtinRoles.includes(role)', `role === 'admin'`],
      ['const isPrivilege = scope_id === null && builtinRoles.includes(role)', 'const isPrivilege = true'],
      [' and not exists (select from held))`', ')`'],
    ],
  },
  {
    file: 'src/recovery/recover.ts',
    tests: ['src/recovery/recover.test.ts'],
    mutants: [
      ['await work.db.run(sql`select ${locked}`)', ''],
      [`not \${holds('keeper')}`, 'true'],
      [`email_verified or not \${holds('admin')}`, 'true'],
      [`\${hasPassword} or cardinality(\${waysIn(app)}) = 0`, `\${hasPassword}`],
      [`\${hasPassword} or cardinality(\${waysIn(app)}) = 0`, 'true'],
    ],
  },
  {
    file: 'src/recovery/reset.ts',
    tests: ['src/recovery/reset.test.ts'],
    mutants: [
      ['await useTicket(db, ticket)', ''],
      [
        'const ended = await endCredentials(db, account_id)',
        'const ended = { sessions_revoked: 0, tokens_revoked: 0 }',
      ],
      ['${ticket.email_key !== null}', 'true'],
      ['${ticket.email_key !== null}', 'false'],
      ['afterCommit(() => clearLogins(app, keys))', ''],
      [`await notify(app, work, account_id, 'password_changed')`, ''],
    ],
  },
  {
    file: 'src/sign-in/privileged.ts',
    tests: [
      'src/recovery/reset.test.ts',
      'src/email/email.test.ts',
      'src/second-factor/admin_account_factors_clear.test.ts',
    ],
    mutants: [
      ['|| account.deleted_at !== null', ''],
      ['if (privileged) throw', 'if (false) throw'],
      ['{ byAnyActor: true }', '{ byAnyActor: false }'],
      ['fresh: true,', ''],
    ],
  },
  {
    file: 'src/sign-in/second-step.ts',
    tests: [
      'src/second-factor/account_totp.test.ts',
      'src/second-factor/admin_account_factors_clear.test.ts',
      'src/passkeys/second-step.test.ts',
    ],
    mutants: [
      ['if (!totp && !passkey) return', 'if (!totp) return'],
      ['if (!totp && !passkey) return', 'if (!passkey) return'],
      ['and confirmed_at is not null) as totp', ') as totp'],
      ['and second_factor) as passkey', ') as passkey'],
    ],
  },
]
