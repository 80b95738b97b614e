import type { ComponentType } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { Output } from '../api/client.ts'
import { factorAdded } from '../api/query.ts'
import { useSend } from '../api/send.ts'
import { words } from '../copy/common.ts'
import { explain } from '../copy/errors.ts'
import { security } from '../copy/security.ts'
import { Button } from '../ui/button.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { Fault } from '../ui/fault.tsx'
import { Field } from '../ui/field.tsx'
import { copyText } from '../ui/id.tsx'
import { toast } from '../ui/toast.tsx'
import { showCodes } from './recovery-codes.tsx'

type Props = { begun: Output<'account_totp_enrol'>; onClose(): void }

/** Shows the secret, and activates it once a code of it was entered. */
export function ConfirmTotp({ begun: { secret, uri }, onClose }: Props) {
  const [code, setCode] = useState('')
  const [isSent, setSent] = useState(false)
  const digits = code.replace(/\s/g, '')
  const isWrong = !/^\d{6}$/.test(digits)
  const confirm = useSend('account_totp_confirm', {
    done: ({ recovery_codes }) => {
      factorAdded()
      toast(security.totp_is_added)
      showCodes(recovery_codes)
    },
  })
  const href = uri.startsWith('otpauth://') ? uri : undefined
  const submit = async (): Promise<void> => {
    setSent(true)
    if (!isWrong && (await confirm.send({ code: digits }))) onClose()
  }
  return (
    <Dialog
      title={security.totp_add}
      size="full"
      onClose={onClose}
      onSubmit={() => void submit()}
      foot={
        <>
          <Button onClick={onClose}>{words.cancel}</Button>
          <Button type="submit" kind="primary" isBusy={confirm.isBusy} wait={confirm.wait}>
            {security.confirm}
          </Button>
        </>
      }
    >
      <p>{security.scan}</p>
      <QrCode text={uri} />
      <div class="secret">
        <code>{secret.replace(/.{4}(?=.)/g, '$& ')}</code>
        <Button icon="copy" onClick={() => void copyText(secret)}>
          {words.copy}
        </Button>
      </div>
      <p>
        <a href={href}>{security.open_app}</a>
      </p>
      <Fault text={confirm.error && explain(confirm.error)} />
      <Field
        label={security.code}
        hint={security.code_hint}
        value={code}
        onInput={setCode}
        fault={isSent && isWrong ? security.code_missing : null}
        autocomplete="one-time-code"
        autofocus
        mono
      />
    </Dialog>
  )
}

/** The code that draws it is loaded when the first one is shown; without it the secret still works. */
function QrCode({ text }: { text: string }) {
  const [Drawn, setDrawn] = useState<ComponentType<{ text: string }> | null>(null)
  useEffect(() => {
    import('./qr.tsx').then(
      ({ default: Qr }) => setDrawn(() => Qr),
      () => {},
    )
  }, [])
  return Drawn && <Drawn text={text} />
}
