import { expect, it } from 'vitest'
import { consoleService, look, person } from './browser.ts'

it('every method has a form and its refusals in words; calls are typed, checked, confirmed and copied', async () => {
  await using test = await consoleService()
  const ada = await test.account({ username: 'ada', roles: ['admin'] })
  const page = await person(test, ada.cookie)
  await page.goto('/admin/api')
  const { methods } = (await ada.client['rpc.discover']()) as unknown as {
    methods: { name: string; params: { name: string }[]; 'x-error-reasons': string[] }[]
  }
  await page.getByRole('link', { name: 'account_verify' }).waitFor()
  const seen = await page.evaluate(async () => {
    const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))
    const links = [...document.querySelectorAll<HTMLAnchorElement>('nav[aria-label=Methods] a')]
    const all: Record<string, { labels: string[]; refusals: number }> = {}
    for (const link of links) {
      link.click()
      while (document.querySelector('h2')?.textContent !== link.firstChild?.textContent) await frame()
      const labels = [...document.querySelectorAll('main form :is(.field > label, legend)')]
      document.querySelector<HTMLAnchorElement>('main .tabs a[href*=refusals]')?.click()
      while (!document.querySelector('main dl.facts')) await frame()
      all[document.querySelector('h2')?.textContent ?? ''] = {
        labels: labels.map((one) => one.textContent ?? ''),
        refusals: document.querySelectorAll('main dl.facts > dd:not(:empty)').length,
      }
    }
    return all
  })
  expect(Object.keys(seen)).toEqual(methods.map(({ name }) => name))
  for (const { name, params, 'x-error-reasons': reasons } of methods) {
    const asked = seen[name]?.labels.map((label) => label.replace(' (required)', '')) ?? []
    for (const param of params) if (param.name !== 'acting') expect(asked, name).toContain(param.name)
    expect(seen[name]?.refusals, name).toBe(reasons.length)
  }

  const nav = page.getByRole('navigation', { name: 'Methods' })
  await nav.getByRole('link', { name: 'admin_account_list admin' }).waitFor()
  for (const [method, who] of [
    ['admin_account_list', 'admin'],
    ['cell_get', 'anyone'],
    ['account_verify', 'anyone signed in'],
  ] as const) {
    await page.goto(`/admin/api?method=${method}`)
    await page.locator('main header', { hasText: method }).getByText(who, { exact: true }).waitFor()
  }
  await page.goto('/admin/api?method=cell_create')
  await page.getByLabel('data (required)').fill('{"label": ')
  await page.getByLabel('visibility').selectOption('public')
  await page.getByLabel('kind', { exact: true }).fill("it's")
  await page.getByRole('button', { name: 'Call', exact: true }).click()
  await page.getByText('This is neither a number nor valid JSON').waitFor()
  await page.getByLabel('data (required)').fill('{"label": "Made here"}')
  await page.getByLabel('Send null as path').check()
  await look(page, 'api-form')
  const params = { data: { label: 'Made here' }, kind: "it's", visibility: 'public', path: null }
  const copied = async (name: string): Promise<string> => {
    await page.getByRole('button', { name }).click()
    return page.evaluate(() => navigator.clipboard.readText())
  }
  const sorted = (value: object) => Object.fromEntries(Object.entries(value).toSorted())
  expect(sorted(JSON.parse(await copied('Copy as JSON')).params)).toEqual(sorted(params))
  expect(await copied('Copy as TypeScript')).toMatch(/^const result = await client\.cell_create\(\{/)
  const curl = await copied('Copy as curl')
  expect(curl).toContain(`${test.url}/api/rpc`)
  expect(curl).toContain('Bearer $TOKEN')
  expect(curl).toContain(`it'\\''s`)
  const call = page.getByRole('button', { name: 'Call', exact: true })
  await call.click()
  await page.getByText('This changes real data.').waitFor()
  await page.getByRole('dialog').getByRole('button', { name: 'Call' }).click()
  await page.getByText('Answered in').waitFor()
  await page.getByRole('tree', { name: 'Result' }).getByText('visibility').waitFor()
  // The confirmation is asked for once per visit.
  await call.click()
  await expect.poll(async () => (await ada.client.cell_list({})).cells.length).toBe(2)
  await page.getByLabel('Find a method').fill('cell_g')
  await page.getByRole('link', { name: 'cell_get', exact: true }).click()
  await page.getByLabel('id', { exact: true }).fill('no id')
  await call.click()
  await page.getByRole('alert').getByText('id:').waitFor()
})

it('before the first change it names the actor that the call is made as, and asks again for another', async () => {
  await using test = await consoleService()
  const ada = await test.account({ username: 'ada' })
  await test.actor(ada.id, 'Night shift')
  const page = await person(test, ada.cookie)
  await page.addInitScript((id) => localStorage.setItem('cellkeep.actor', id), ada.actor_id)
  await page.goto('/admin/api?method=cell_create')
  await page.getByLabel('data (required)').fill('{}')
  for (const name of ['Night shift', 'ada']) {
    await page.getByRole('main').getByRole('combobox', { name: 'acting' }).selectOption(name)
    await page.getByRole('button', { name: 'Call', exact: true }).click()
    await page.getByText(`cell_create is called as ${name}.`).waitFor()
    await page.getByRole('dialog').getByRole('button', { name: 'Call' }).click()
    await page.getByRole('dialog').waitFor({ state: 'detached' })
  }
})
