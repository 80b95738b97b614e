import type { ComponentType } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { Output } from '../api/client.ts'
import { factorAdded } from '../api/query.ts'
import { useSend } from '../api/send.ts'
import { words } from '../copy/common.ts'
import { security } from '../copy/security.ts'
import { checkBuild } from '../lib/new-build.ts'
import { Button } from '../ui/button.tsx'
import { Field } from '../ui/field.tsx'
import { FormDialog } from '../ui/form-dialog.tsx'
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
    <FormDialog
      title={security.totp_add}
      size="full"
      about={
        <>
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
        </>
      }
      verb={security.confirm}
      of={confirm}
      onClose={onClose}
      onSubmit={() => void submit()}
    >
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
    </FormDialog>
  )
}

/** The code that draws it is loaded when the first one is shown; without it the secret still works. */
function QrCode({ text }: { text: string }) {
  const [Drawn, setDrawn] = useState<ComponentType<{ text: string }> | null>(null)
  useEffect(() => {
    import('./qr.tsx').then(
      ({ default: Qr }) => setDrawn(() => Qr),
      () => void checkBuild(),
    )
  }, [])
  return Drawn && <Drawn text={text} />
}
