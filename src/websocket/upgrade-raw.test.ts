import { once } from 'node:events'
import { setImmediate as turn } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { exchange, open, send, statuses } from '../../test/helpers/http.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { openSocket } from '../../test/helpers/sockets.ts'

const test = await serviceForFile()
const ada = await test.account()

const key = 'dGhlIHNhbXBsZSBub25jZQ=='
const good: Record<string, string> = {
  Host: 'localhost',
  Connection: 'Upgrade',
  Upgrade: 'websocket',
  'Sec-WebSocket-Key': key,
  'Sec-WebSocket-Version': '13',
}
const request = (changed: Record<string, string | undefined> = {}, line = 'GET /api/ws HTTP/1.1'): string => {
  const headers = { ...good, Cookie: ada.cookie, ...changed }
  const lines = Object.entries(headers).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}: ${value}`],
  )
  return `${[line, ...lines].join('\r\n')}\r\n\r\n`
}
/** The status and body of a refusal; checks that the server still serves. */
async function refusal(bytes: string): Promise<unknown[]> {
  const received = await exchange(test.url, bytes)
  expect((await send(test.url, { path: '/health' })).status).toBe(200)
  const [head, body] = received.split('\r\n\r\n')
  if (body) expect(head?.toLowerCase()).toContain(`content-length: ${body.length}`)
  return [...statuses(received), body ? JSON.parse(body) : '']
}

describe('the bytes of an upgrade', () => {
  it('with a bad key, version or list of protocols are 400', async () => {
    const bad = [
      { 'Sec-WebSocket-Key': undefined },
      { 'Sec-WebSocket-Key': 'short' },
      { 'Sec-WebSocket-Key': `${key}, ${key}` },
      { 'Sec-WebSocket-Version': undefined },
      { 'Sec-WebSocket-Version': '8' },
      { 'Sec-WebSocket-Version': '14' },
      { 'Sec-WebSocket-Version': 'x' },
      { 'Sec-WebSocket-Protocol': '' },
      { 'Sec-WebSocket-Protocol': 'a,,b' },
      { 'Sec-WebSocket-Protocol': 'a, a' },
      { 'Sec-WebSocket-Protocol': 'a b' },
    ]
    for (const changed of bad)
      expect(await refusal(request(changed)), JSON.stringify(changed)).toEqual([
        400,
        { error: 'invalid_upgrade' },
      ])
  })

  it('with a body are 400, whether or not it arrives', async () => {
    for (const bytes of [
      `${request({ 'Content-Length': '2' })}{}`,
      request({ 'Content-Length': '2' }),
      `${request({ 'Transfer-Encoding': 'chunked' })}2\r\n{}\r\n0\r\n\r\n`,
    ])
      expect(await refusal(bytes)).toEqual([400, { error: 'invalid_upgrade' }])
  })

  it('that ask for another protocol, or not for one, are 426', async () => {
    expect(await refusal(request({}, 'GET /api/ws HTTP/1.0'))).toEqual([426, { error: 'upgrade_required' }])
    for (const changed of [{ Upgrade: 'h2c' }, { Upgrade: 'websocket2' }, { Upgrade: 'websocket, h2c' }])
      expect(await refusal(request(changed))).toEqual([426, { error: 'upgrade_required' }])
    const kept = request({ Connection: 'close' })
    expect(await refusal(kept)).toEqual([426, { error: 'upgrade_required' }])
  })

  it('are answered what to ask for instead', async () => {
    const plain = await exchange(test.url, `GET /api/ws HTTP/1.1\r\nHost: x\r\nCookie: ${ada.cookie}\r\n\r\n`)
    for (const received of [plain, await exchange(test.url, request({ Upgrade: 'h2c' }))]) {
      expect(statuses(received)).toEqual([426])
      expect(received).toMatch(/\r\nupgrade: websocket\r\n/)
      expect(received).toMatch(/\r\nconnection: upgrade, close\r\n/)
    }
    const old = await exchange(test.url, request({ 'Sec-WebSocket-Version': '8' }))
    expect(old).toMatch(/\r\nsec-websocket-version: 13\r\n/)
    expect(old).toMatch(/\r\nconnection: close\r\n/)
  })

  it('with another verb are 405, without Host or with two 400', async () => {
    expect(await refusal(request({}, 'POST /api/ws HTTP/1.1'))).toEqual([
      405,
      { error: 'method_not_allowed' },
    ])
    expect(await refusal(request({ Host: undefined }))).toEqual([400, ''])
    expect(await refusal(request({ host: 'localhost' }))).toEqual([400, ''])
  })

  it('are declined elsewhere: the request is answered as if it had not asked', async () => {
    const ping = 'GET /health HTTP/1.1'
    const received = await exchange(test.url, request({ Connection: 'Upgrade, close' }, ping))
    expect(statuses(received)).toEqual([200])
    const body = '{"jsonrpc":"2.0","id":1,"method":"account_verify"}'
    const headers = {
      Connection: 'Upgrade, close',
      Upgrade: 'h2c',
      'Content-Type': 'application/json',
      'Content-Length': String(body.length),
    }
    const answer = await exchange(test.url, `${request(headers, 'POST /api/rpc HTTP/1.1')}${body}`)
    expect(answer).toContain(`"result":{"id":"${ada.id}"`)
    expect(statuses(answer)).toEqual([200])
  })

  it('behind a request that is still being answered are refused after its answer', async () => {
    const list = 'GET /api/rpc?method=account_session_list&id=1 HTTP/1.1'
    const first = `${list}\r\nHost: localhost\r\nCookie: ${ada.cookie}\r\n\r\n`
    expect(statuses(await exchange(test.url, first + request()))).toEqual([200, 400])
  })

  it('offer protocols and extensions in vain', async () => {
    const socket = await open(test.url)
    socket.write(
      request({ 'Sec-WebSocket-Protocol': 'a, b', 'Sec-WebSocket-Extensions': 'permessage-deflate' }),
    )
    const [chunk] = await once(socket, 'data')
    const head = String(chunk).toLowerCase()
    expect(head).toContain('101 switching protocols')
    expect(head).toContain('x-request-id: ')
    expect(head).not.toContain('sec-websocket-protocol')
    expect(head).not.toContain('sec-websocket-extensions')
    socket.destroy()
  })

  it('may bring frames along, and end in the middle of anything', async () => {
    const socket = await open(test.url)
    // A masked text frame with `{}`: an object without an id, so nothing is answered; then a truncated one.
    const frame = Buffer.from([0x81, 0x82, 0, 0, 0, 0, 0x7b, 0x7d])
    socket.write(Buffer.concat([Buffer.from(request()), frame, Buffer.from([0x81, 0xfe, 0x10])]))
    await once(socket, 'data')
    socket.resetAndDestroy()
    for (const part of [request().slice(0, 40), request()]) {
      const cut = await open(test.url)
      cut.write(part)
      cut.resetAndDestroy()
    }
    const alive = await openSocket(test.url, { cookie: ada.cookie })
    await alive.close()
  })

  it('with a message that is never complete are cut, however little of it there is between pongs', async () => {
    const pongs = Buffer.alloc(250 * 131)
    for (let at = 0; at < pongs.length; at += 131) pongs.set([0x8a, 0xfd], at)
    const heartbeat = Buffer.from('{"jsonrpc":"2.0","id":1,"method":"heartbeat"}')
    const ping = Buffer.from([0x81, 0x80 + heartbeat.length, 0, 0, 0, 0, ...heartbeat])
    const begun = Buffer.from([0x01, 0x81, 0, 0, 0, 0, 0x7b])
    const goesOn = Buffer.from([0x00, 0x81, 0, 0, 0, 0, 0x20])
    const opened = async () => {
      const socket = await open(test.url)
      socket.on('error', () => {}).write(request())
      await once(socket, 'data')
      return socket
    }
    const [whole, endless] = [await opened(), await opened()]
    // `once` would reject with the error of a write to a socket that was cut.
    const ended = new Promise<void>((resolve) => endless.resume().once('close', () => resolve()))
    endless.write(begun)
    for (let round = 0; round < 70; round++) {
      whole.write(Buffer.concat([ping, pongs]))
      endless.write(Buffer.concat([goesOn, pongs]))
      await once(whole, 'data')
    }
    await ended
    whole.destroy()
  })

  it('with a message that comes byte by byte are cut, as each read takes some hundred bytes', async () => {
    const socket = await open(test.url)
    socket
      .on('error', () => {})
      .setNoDelay()
      .write(request())
    await once(socket, 'data')
    let received = Buffer.alloc(0)
    let isClosed = false
    socket
      .on('data', (chunk: Buffer) => {
        received = Buffer.concat([received, chunk])
      })
      .once('close', () => {
        isClosed = true
      })
    socket.write(Buffer.from([0x81, 0xff, 0, 0, 0, 0, 0, 0x0f, 0xff, 0xff, 0, 0, 0, 0]))
    for (let sent = 0; sent < 100_000 && !isClosed; sent++) {
      socket.write(' ')
      await turn()
    }
    expect(isClosed).toBe(true)
    expect(received.subarray(0, 4)).toEqual(Buffer.from([0x88, 2 + received.length - 4, 0x03, 0xf0]))
  })

  it('that are no frames close the socket and nothing else', async () => {
    const broken: Buffer[] = [
      Buffer.from([0xff, 0xff, 0xff, 0xff, 0xff, 0xff]),
      // Not masked; a reserved opcode; a control frame in fragments; a text that is not UTF-8; a huge length.
      Buffer.from([0x81, 0x02, 0x7b, 0x7d]),
      Buffer.from([0x83, 0x80, 0, 0, 0, 0]),
      Buffer.from([0x09, 0x80, 0, 0, 0, 0]),
      Buffer.from([0x81, 0x81, 0, 0, 0, 0, 0xff]),
      Buffer.from([0x81, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]),
      Buffer.from([0x88, 0x81, 0, 0, 0, 0, 0x01]),
    ]
    for (const bytes of broken) {
      const socket = await open(test.url)
      socket.write(request())
      await once(socket, 'data')
      socket.resume().write(bytes)
      await once(socket, 'close')
    }
    const alive = await openSocket(test.url, { cookie: ada.cookie })
    expect(await alive.call('heartbeat')).toMatchObject({ result: {} })
    await alive.close()
  })
})
