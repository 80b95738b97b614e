import { expect, it } from 'vitest'
import { consoleService, look, person } from './browser.ts'

const hostile = {
  script: '<script>window.ran = 1</script>',
  image: `'><img src=x onerror="window.ran = 1">`,
  vector: '"><svg onload=window.ran=1>',
}

it('markup in a path, kind, key, actor, token, message or reason stays text on every page that shows it', async () => {
  await using test = await consoleService({ roles: [{ name: 'editor', grant_paths: ['admin'] }] })
  const ada = await test.account({ username: 'ada', roles: ['admin', 'editor'] })
  const grace = await test.account({ username: 'grace' })
  const to_actor_id = await test.actor(grace.id, hostile.image)
  const offerTo = () =>
    ada.client.role_grant_offer_create({
      ...{ to_account_id: grace.id, to_actor_id, role: 'editor', message: hostile.vector },
    })
  const { offer } = await offerTo()
  await grace.client.role_grant_offer_decline({
    ...{ offer_id: offer.offer_id, reason: hostile.script, acting: grace.actor_id },
  })
  await offerTo()
  await grace.client.account_token_create({
    ...{ name: hostile.vector, scope: { kind: 'full' }, lifetime: { kind: 'eternal' } },
  })
  const { role_grant_id } = await test.roleGrant({ actor_id: grace.actor_id, role: 'editor' })
  await ada.client.role_grant_revoke({ actor_id: grace.actor_id, role_grant_id, reason: hostile.image })
  const { cell } = await ada.client.cell_create({
    data: { label: 'Target', [hostile.script]: hostile.image },
    ...{ kind: hostile.vector, path: `/${hostile.script}` },
  })

  const shows = async (of: { cookie: string }, to: string, ...texts: string[]): Promise<void> => {
    const page = await person(test, of.cookie)
    await page.goto(to)
    for (const text of texts) await page.getByText(text).filter({ visible: true }).first().waitFor()
    const made =
      'main script, main img:not([src^="data:"]), main [onload], main [onerror], main [href^="javascript:"]'
    expect([to, await page.locator(made).count()]).toEqual([to, 0])
    expect(await page.evaluate(() => Reflect.get(window, 'ran'))).toBeUndefined()
    await look(page, `hostile${to.replace(/[0-9a-f-]{36}/, 'id').replaceAll('/', '-')}`)
  }
  await shows(ada, '/admin/cells', hostile.vector)
  await shows(
    ada,
    `/admin/cells/${cell.id}`,
    `/${hostile.script}`,
    hostile.script,
    hostile.image,
    hostile.vector,
  )
  await shows(ada, `/admin/people/${grace.id}`, hostile.image)
  await shows(ada, '/admin/audit')
  await shows(grace, '/admin/inbox', hostile.image, hostile.vector)
  await shows(grace, '/admin/inbox/history', hostile.script)
  await shows(ada, '/admin/inbox/history', hostile.image, hostile.script)
  await shows(ada, `/admin/people/${grace.id}/offers`, hostile.script)
  await shows(grace, '/admin/me/tokens', hostile.vector)
})
