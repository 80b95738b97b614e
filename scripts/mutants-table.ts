// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these strings are source code.

/** The mutants by source file, with the tests that must catch them. */
export type Group = {
  file: string
  tests: string[]
  mutants: [text: string, by: string, equivalent?: string][]
}

export const groups: Group[] = [
  {
    file: 'src/core/guards.ts',
    tests: ['src/core/guards.test.ts', 'src/core/scoped-roles.test.ts'],
    mutants: [
      [`auth.account === 'required') throw`, `auth.account === 'optional') throw`],
      ['types && !types.includes(caller.credential.type)', 'false'],
      ['!types.includes(', 'types.includes('],
      ['if (!reaches(caller.credential.scope, auth, target))', 'if (false)'],
      [`if (scope.kind === 'full') return true`, 'return true'],
      ['target.method === undefined || auth.required_scope', 'target.method === undefined'],
      ['if (target.method === undefined || auth.required_scope) return false', ''],
      ['target.side_effects === false', 'true'],
      ['scope.methods.includes(target.method)', 'true'],
      [`scope.kind === 'read_only' ?`, `scope.kind === 'methods' ?`],
      ['if (!auth.roles) return', 'return'],
      ['scope_id === null && asked === role', 'asked === role'],
      [': asked.role === role', ': true'],
      ['if (!grants.some(counts))', 'if (grants.length === 0)'],
      ['if (!roles.some(holds)) throw', 'if (false) throw'],
      ['grant.scope_kind === scope_kind && ', ''],
    ],
  },
  {
    file: 'src/core/guards.ts',
    tests: ['src/core/acting.test.ts', 'src/core/guards.test.ts'],
    mutants: [
      [`if (auth.actor === 'none') return null`, ''],
      ['(candidate) => candidate.id === named.data', '() => true'],
      [
        `if (!chosen) throw refusal('actor_not_on_account')`,
        'if (!chosen) return candidates[0] as Candidate',
      ],
      ['candidates.length > 1', 'false'],
      ['candidates.map(({ id, name }) => ({ id, name }))', '[]'],
      [`if (candidates.length === 0) throw refusal('no_actors_on_account')`, ''],
      ['if (named && !named.success)', 'if (false)'],
    ],
  },
  {
    file: 'src/core/guards.ts',
    tests: ['src/sign-in/policy.test.ts'],
    mutants: [
      ['if (!target.before_enrolment) guardStrength(caller)', ''],
      ['if (must_enrol) throw', 'if (false) throw'],
    ],
  },
  {
    file: 'src/db/held.ts',
    tests: ['src/core/mutate.test.ts'],
    mutants: [['find(takesNoWrites)\n    held.isEnded = true', 'find(takesNoWrites)']],
  },
  {
    file: 'src/websocket/socket.ts',
    tests: ['src/sign-in/policy.test.ts'],
    mutants: [
      ['async () => (await this.#read())?.must_enrol === false', 'async () => true'],
      ["if (mayBeWeak && closings.some(({ kind }) => kind === 'role')) this.#vetting.doubt()", ''],
      ["if (reason === 'role_lost') this.#vetting.doubt()", "if (reason === 'role_lost') return"],
    ],
  },
  {
    file: 'src/auth/fresh.ts',
    tests: ['src/auth/fresh.test.ts'],
    mutants: [
      ["${fresh_seconds}::int * interval '1 second'", "${fresh_seconds}::int * interval '2 seconds'"],
      ['s.strong or not', 'true or not'],
      ["if (credential.type === 'daemon_token') return", 'return'],
      ['if (!fresh) throw', 'if (false) throw'],
    ],
  },
  {
    file: 'src/core/dispatch.ts',
    tests: [
      'src/core/guards.test.ts',
      'src/http/jsonrpc.test.ts',
      'src/websocket/messages.test.ts',
      'src/cells/cell_get.test.ts',
      'src/actors/actor_search.test.ts',
      'src/accounts/account_delete.test.ts',
      'src/limits/limiters.test.ts',
      'src/core/consumer-action.test.ts',
    ],
    mutants: [
      ['if (call.viaGet && action.side_effects)', 'if (false)'],
      ['message?.admit(presented)', ''],
      ['guardCredential(auth, caller, action)', ''],
      ['guardRole(auth, actor?.role_grants ?? [])', ''],
      ['const caller = isPublic ? null : presented', 'const caller = presented'],
      [`Object.hasOwn(params, 'acting')`, `'acting' in params`, 'no prototype has this key'],
      ['if (call.paramsIssue) throw issues([call.paramsIssue])', ''],
      ['if (bad) throw', 'if (false) throw'],
      ['if (!parsed.success) throw issues(toIssues(parsed.error))', ''],
      ['await charge(app, action, call, caller)', ''],
      [`!(auth.account === 'optional' && caller)`, 'true'],
      [`if (axis === 'both' && caller)`, 'if (false)'],
      [`else if (axis === 'account' && caller)`, 'else if (false)'],
      ['call.trace.account_id = caller.account.id', ''],
      [
        'role_grants: actor?.role_grants ?? []',
        'role_grants: caller?.candidates?.flatMap((one) => one.role_grants) ?? []',
      ],
    ],
  },
  {
    file: 'src/accounts/locks.ts',
    tests: ['src/sessions/ended-meanwhile.test.ts'],
    mutants: [
      ['if (!isHeld) throw', 'if (false) throw'],
      ["if (type === 'daemon_token') return sql`true`", 'if (type) return sql`true`'],
    ],
  },
  ...[
    'src/actors/actor_rename.ts',
    'src/offers/role_grant_offer_accept.ts',
    'src/offers/role_grant_offer_retract.ts',
  ].map((file) => ({
    file,
    tests: ['test/credentials-sweep.test.ts'],
    mutants: [['if (!isHeld) throw', 'if (false) throw'] as [string, string]],
  })),
  {
    file: 'src/accounts/account_delete.ts',
    tests: ['src/sessions/ended-meanwhile.test.ts'],
    mutants: [
      [
        '? lockWithCredential(db, { account, credential })',
        "? lockAccountFor(db, 'account_delete', target, {} as never)",
      ],
      [
        ': lockForAdmin(db, target, { account, credential, actor })',
        ": lockAccountFor(db, 'account_delete', target, {} as never)",
      ],
    ],
  },
  {
    file: 'src/roles/admin.ts',
    tests: ['src/sessions/ended-meanwhile.test.ts'],
    mutants: [
      ['if (!isHeld) throw', 'if (false) throw'],
      ['if (lost) throw', 'if (false) throw'],
    ],
  },
  {
    file: 'src/offers/role_grant_offer_create.ts',
    tests: ['src/sessions/ended-meanwhile.test.ts'],
    mutants: [['if (!isHeld) throw', 'if (false) throw']],
  },
  {
    file: 'src/roles/role_grant_revoke.ts',
    tests: ['src/sessions/ended-meanwhile.test.ts'],
    mutants: [['if (!isHeld) throw', 'if (false) throw']],
  },
  {
    file: 'src/accounts/revoke-all.ts',
    tests: ['src/sessions/ended-meanwhile.test.ts'],
    mutants: [
      [
        'await lockForAdmin(work.db, account_id, { account, actor, credential })',
        '(await lockAccounts(work.db, [account_id])).get(account_id)',
      ],
    ],
  },
  {
    file: 'src/accounts/admin/account_undelete.ts',
    tests: ['src/sessions/ended-meanwhile.test.ts'],
    mutants: [
      [
        'await lockForAdmin(db, account_id, { account, actor, credential })',
        "await lockAccountFor(db, 'account_undelete', account_id, detail)",
      ],
    ],
  },
  {
    file: 'src/cells/access.ts',
    tests: ['src/cells/edges/list.test.ts'],
    mutants: [
      ['where of_cell.principal in (select unnest(principals) from me)', 'where false'],
      ['case when count(*) > ${grantsMax} then me.principals else', 'case when false then null else'],
    ],
  },
  {
    file: 'src/cells/access.ts',
    tests: ['src/cells/access.test.ts'],
    mutants: [
      [`g.role = 'admin' and g.scope_id is null`, `g.role = 'admin'`],
      [`and g.role = 'admin'`, ''],
      [`'r:*:' || g.role`, `'r:*:' || 'admin'`],
      [`'r:' || g.scope_id || ':' || g.role`, `'r:' || g.scope_id || ':'`],
      ['array_remove(', 'array_append(', 'a principal of null equals none'],
      [
        ') g on g.cell_id = ${sql.raw(alias)}.id and g.principal = k.principal',
        ') g on g.cell_id = ${sql.raw(alias)}.id',
      ],
      ['const live = sql`${c}.deleted_at is null`', 'const live = sql`true`'],
      ['${c}.created_by = me.actor_id, false', '${c}.created_by is not null, false'],
      [`where g.level = 'editor'`, ''],
      [`\${c}.visibility = 'public' or `, ''],
      [`\${c}.visibility = 'public' or`, `\${c}.visibility <> 'public' or`],
      [
        '(${live} and (me.is_admin or (${c}.created_by is not null and (${owner} or ${editing}))))',
        '(${live} and (me.is_admin or ${owner} or ${editing}))',
      ],
      [
        'manage: sql`(${live} and (me.is_admin or ${owner}))`',
        'manage: sql`(${live} and (me.is_admin or ${owner} or ${editing}))`',
      ],
      ['manage: sql`(${live} and (me.is_admin or ${owner}))`', 'manage: sql`(${live} and ${owner})`'],
      [' or me.is_admin or ${held}))`', ' or ${held}))`'],
      [' or me.is_admin or ${held}))`', ' or me.is_admin))`'],
    ],
  },
  {
    file: 'src/cells/edges/write.ts',
    tests: ['src/cells/shared-links.test.ts', 'src/cells/edges/races.test.ts'],
    mutants: [
      [
        '${linkable(sql`asked.anchor_id`, sql`asked.far_id`)} and ${isUntouched}',
        '${linkable(sql`asked.anchor_id`, sql`asked.far_id`)}',
      ],
      [
        'where ${editable} and ${isUntouched} for share of c skip locked',
        'where ${editable} for share of c skip locked',
      ],
    ],
  },
  {
    file: 'src/cells/edges/cell_item_move.ts',
    tests: ['src/cells/shared-links.test.ts', 'src/cells/lost-rights.test.ts'],
    mutants: [
      ['${movable} and ${isUntouched}', '${movable}'],
      [' and i.child_id = free.child_id', ''],
      [`=== 'cell_item_pkey'`, `=== ''`],
      [' for no key update of c skip locked', ' for no key update of c'],
    ],
  },
  {
    file: 'src/cells/grants/grants.ts',
    tests: ['src/cells/shared-links.test.ts', 'src/cells/lost-rights.test.ts', 'src/cells/grants'],
    mutants: [
      ['for no key update of c skip locked`', 'for no key update of c`'],
      ['where id <> ${new_id}::uuid', 'where false'],
      [' and exists (select from grantee)', ''],
    ],
  },
  {
    file: 'src/cells/cell_delete.ts',
    tests: ['src/cells/shared-links.test.ts'],
    mutants: [[' and ${isUntouched}', '']],
  },
  {
    file: 'src/cells/cell_update.ts',
    tests: ['src/cells/shared-links.test.ts'],
    mutants: [['          and ${isUntouched}\n', '']],
  },
  {
    file: 'src/auth/active-grant.ts',
    tests: [
      'src/cells/access.test.ts',
      'src/auth/caller.test.ts',
      'src/auth/daemon-token.test.ts',
      'src/core/guards.test.ts',
    ],
    mutants: [
      ['g.revoked_at is null and g.closed_at is null', 'g.closed_at is null'],
      ['g.revoked_at is null and g.closed_at is null', 'g.revoked_at is null'],
      ['g.expires_at > statement_timestamp()', 'true'],
      [`g.role = 'keeper' and g.scope_id is null`, `g.role = 'keeper'`],
      ['actor.deleted_at is null and owner.deleted_at is null', 'owner.deleted_at is null'],
      ['actor.deleted_at is null and owner.deleted_at is null', 'actor.deleted_at is null'],
      ['order by owner.id limit 1', 'order by owner.id desc limit 1'],
      ['where g.actor_id = actor.id and ${activeGrant}', 'where g.actor_id = actor.id'],
    ],
  },
  {
    file: 'src/auth/token-scope.ts',
    tests: [
      'src/core/guards.test.ts',
      'src/tokens/account_token.test.ts',
      'src/tokens/account_token-input.test.ts',
      'src/tokens/token-gates.test.ts',
      'src/auth/caller.test.ts',
    ],
    mutants: [
      ['if (!parsed.success) return null', `if (!parsed.success) return { kind: 'full' }`],
      [
        "z.strictObject({ version: z.literal(version), kind: z.literal('read_only') })",
        "z.object({ version: z.unknown(), kind: z.literal('read_only') })",
      ],
      ['[...new Set(scope.methods)].sort()', '[...scope.methods]'],
      ['.min(1).max(100)', '.max(100)'],
      ['.min(1).max(100)', '.min(1)'],
    ],
  },
  {
    file: 'src/auth/key-ring.ts',
    tests: ['src/auth/key-ring.test.ts', 'src/auth/cookie.test.ts'],
    mutants: [
      ['own.length === given.length && timingSafeEqual(own, given)', 'own.length === given.length'],
      ['sign: (text, key = 0)', 'sign: (text, key = keys.length - 1)'],
      [
        "createMac(ring.map((key) => createSecretKey(digest(key, `derive:${purpose}`), 'utf8')))",
        'createMac(ring)',
      ],
      ['`derive:${purpose}`', '`derive:`'],
    ],
  },
  {
    file: 'src/auth/cookie.ts',
    tests: ['src/auth/cookie.test.ts', 'src/auth/caller.test.ts', 'src/cells/statements.test.ts'],
    mutants: [
      ['if (mac.verify(signed(token, expires), given) < 0) return undefined', ''],
      ['mac.verify(signed(token, expires), given) < 0', 'mac.verify(signed(token, expires), given) < -1'],
      ['`svc_session:${token}.${expires}`', '`svc_session:${token}`'],
      ['found.expires * 1000 <= now()', 'false'],
      ['found.expires * 1000 <= now()', 'found.expires * 1000 < now()'],
      ['pair.startsWith(`${name}=`, start)', 'pair.includes(`${name}=`)'],
      [
        `while (pair[start] === ' ' || pair[start] === '\\t') start++`,
        `while (/\\s/.test(pair[start] ?? '')) start++`,
      ],
      ['HttpOnly; ', ''],
      [`secure ? 'Secure; ' : ''`, `''`],
      ['SameSite=Strict', 'SameSite=Lax'],
      [`hostPrefix ? '__Host-' : ''`, `''`],
      ['if (latest.size === rememberedMax) {', 'if (false) {'],
      ['latest.set(Buffer.from(value).toString(), found)', `latest.set('', found)`],
    ],
  },
  {
    file: 'src/auth/caller.ts',
    tests: ['src/auth/carriers.test.ts', 'src/auth/daemon-token.test.ts'],
    mutants: [
      [`header('origin') !== undefined || header('referer') !== undefined`, `header('origin') !== undefined`],
      [
        `header('origin') !== undefined || header('referer') !== undefined`,
        `header('referer') !== undefined`,
      ],
      [
        `header('origin') !== undefined || header('referer') !== undefined`,
        `header('origin') || header('referer')`,
      ],
      ['[Rr] (secret', '[Rr] *(secret'],
      ['_-]{43})$/', '_-]{43})/'],
      [`discarded.push('bearer_discarded_browser_context')`, ''],
      [`discarded.push('daemon_token_discarded_browser_context')`, ''],
    ],
  },
  {
    file: 'src/auth/secrets.ts',
    tests: ['src/auth/daemon-token.test.ts'],
    mutants: [['/^[A-Za-z0-9_-]{43}$/', '/[A-Za-z0-9_-]{43}/']],
  },
  {
    file: 'src/auth/caller.ts',
    tests: [
      'src/auth/caller.test.ts',
      'src/auth/daemon-token.test.ts',
      'src/core/guards.test.ts',
      'src/tokens/account_token.test.ts',
      'src/tokens/token-gates.test.ts',
      'src/tokens/account_token-life.test.ts',
    ],
    mutants: [
      [' and account.deleted_at is null`\n\nconst sessions', '`\n\nconst sessions'],
      ['sql`c.expires_at > now()`', 'sql`true`'],
      ['sql`(c.expires_at is null or c.expires_at > now())`', 'sql`true`'],
      [') actor where actor.deleted_at is null', ') actor'],
      ['if (!row || !scope) return null', 'if (!row) return null'],
      ['(await daemon?.holds(presented))', 'true'],
      [`return toCaller(row, 'api_token', scope)`, `return toCaller(row, 'api_token', { kind: 'full' })`],
    ],
  },
  {
    file: 'src/core/cursor.ts',
    tests: ['src/core/cursor.test.ts', 'src/core/page.test.ts', 'src/cells/list/cursor.test.ts'],
    mutants: [
      ['if (key < 0) return undefined', ''],
      ['`${payload}.${binding}`', '`${payload}`'],
      ['`${payload}.${binding}`', '`${payload}${binding}`'],
      ['if (mac.verify(signed(payload, binding), signature) >= 0) return', 'return'],
    ],
  },
  {
    file: 'src/core/page.ts',
    tests: ['src/core/page.test.ts', 'src/audit-log/audit_log_list.test.ts'],
    mutants: [
      ['`${method} ${JSON.stringify(bound)}`', 'JSON.stringify(bound)'],
      ['JSON.stringify(bound)', `''`],
      ['rows.slice(0, page.limit)', 'rows.slice(0)'],
      ['rows.length > page.limit &&', 'rows.length >= page.limit &&'],
      [`if (after === undefined) throw`, 'if (false) throw'],
    ],
  },
  {
    file: 'src/http/origin.ts',
    tests: ['src/http/origin.test.ts'],
    mutants: [
      [`host.replace(/[.[\\]]/g, '\\\\$&')`, 'host'],
      [`'[^./:,@\\\\s\\\\[\\\\]]+'`, `'.+'`],
      [`'(?::\\\\d{1,5})?'`, `'(?::.*)?'`],
      ['new RegExp(`^${scheme}', 'new RegExp(`${scheme}'],
      ["${portSource}$`, 'i')", "${portSource}`, 'i')"],
      [`$\`, 'i')`, `$\`, 'iu')`],
      ['if (address === undefined) return origin', 'return origin'],
    ],
  },
  {
    file: 'src/http/exchange.ts',
    tests: ['src/http/node.test.ts'],
    mutants: [['if (rawHeaders.length > 2 * headersMax) return true', '']],
  },
  {
    file: 'src/http/edge.ts',
    tests: ['src/http/edge.test.ts', 'src/http/cors.test.ts'],
    mutants: [
      [
        'sent.origin !== undefined && !sent.isAllowed && isGuarded',
        'sent.origin !== undefined && !sent.isAllowed && false',
      ],
      [`surface?.checksOrigin || info.carriers`, `info.carriers`],
      [` || info.carriers.cookie.state !== 'none'`, ''],
      [`cookie.state !== 'none'`, `cookie.state === 'good'`],
      ['if (!isAllowed) return', 'if (!origin) return'],
    ],
  },
  {
    file: 'src/oidc/relying-party.ts',
    tests: ['src/oidc/hostile.test.ts', 'src/oidc/link.test.ts'],
    mutants: [
      ['library.enableNonRepudiationChecks,', ''],
      ['expectedNonce: nonce,', ''],
      ['expectedState: state,', 'expectedState: library.skipStateCheck,'],
      ['if (idToken.azp !== undefined &&', 'if (false &&'],
      ['if (!(Number(idToken[name]) <= latest))', 'if (false)'],
      [`['iat'] : ['iat', 'auth_time']`, `['iat'] : ['iat']`],
      ['if (configuration.serverMetadata().issuer !== issuer)', 'if (false)'],
      ['other[email] === undefined || other[email] === from[email]', 'true'],
      ['idToken[email] === undefined ? [userinfo, idToken] : [idToken, userinfo]', '[idToken, userinfo]'],
    ],
  },
  {
    file: 'src/oidc/oidc_finish.ts',
    tests: ['src/oidc/hostile.test.ts', 'src/oidc/link.test.ts'],
    mutants: [
      ['flow.provider !== provider.id', 'false'],
      ['if (flow.session_id !== null', 'if (false'],
    ],
  },
  {
    file: 'src/oidc/enter.ts',
    tests: ['src/oidc/strangers.test.ts'],
    mutants: [
      ['and not ${isPrivileged(sql`account.id`)}', ''],
      [' and email_verified\n', '\n'],
      ['(${identity.strong}::boolean or not', '(true or not'],
    ],
  },
  {
    file: 'src/oidc/sign-up.ts',
    tests: ['src/oidc/strangers.test.ts'],
    mutants: [[`if (provider.on_unknown === 'refuse')`, 'if (false)']],
  },
  {
    file: 'src/cells/explain/one.ts',
    tests: ['src/cells/explain/cell_access_explain.test.ts'],
    mutants: [
      ['actor_id === caller ? tier.view : tier.manage', 'tier.view'],
      ['case when c.manages then', 'case when true then'],
      ['if (is_there) return', 'if (true) return'],
    ],
  },
  {
    file: 'src/cells/explain/everyone.ts',
    tests: ['src/cells/explain/cell_access_explain.test.ts'],
    mutants: [['::uuid and ${tier.manage}', '::uuid and ${tier.view}']],
  },
  {
    file: 'src/cells/cell_delete_preview.ts',
    tests: ['src/cells/cell_delete_preview.test.ts'],
    mutants: [
      ['::uuid and ${tier.edit}', '::uuid and ${tier.view}'],
      ['case when manages then', 'case when true then'],
    ],
  },
  {
    file: 'src/cells/clone/cell_clone_preview.ts',
    tests: ['src/cells/clone/cell_clone_preview.test.ts'],
    mutants: [['::uuid and ${tier.view}', '::uuid and ${tier.live}']],
  },
  {
    file: 'src/roles/admin.ts',
    tests: [
      'src/accounts/account_delete-guards.test.ts',
      'src/accounts/account_delete_preview.test.ts',
      'src/offers/offer-lists.test.ts',
    ],
    mutants: [['account_id !== account.id && !holdsAdmin(role_grants)', 'false']],
  },
  {
    file: 'src/roles/role_grant_explain.ts',
    tests: ['src/roles/role_grant_explain.test.ts'],
    mutants: [['found.account_id !== account.id && !holdsAdmin(role_grants)', 'false']],
  },
  {
    file: 'src/roles/admin.ts',
    tests: ['src/roles/lost-admin.test.ts'],
    mutants: [
      ['live.is_admin ? undefined : notAdmin()', 'undefined'],
      ['::uuid and deleted_at is null', '::uuid'],
    ],
  },
  {
    file: 'src/offers/role_grant_offer_accept.ts',
    tests: ['src/offers/world.property.test.ts', 'src/offers/role_grant_offer_accept.test.ts'],
    mutants: [
      ['stored.to_actor_id !== null && stored.to_actor_id !== actor.id', 'false'],
      ['superseded_at = case when not ${isAccepted} then now() end', 'superseded_at = null::timestamptz'],
    ],
  },
]
