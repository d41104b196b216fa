from django.apps import AppConfig


class GoalsConfig(AppConfig):
    name = "goals"

    def ready(self) -> None:
        from allauth.account.signals import password_changed, password_reset
        from django.contrib.auth.signals import user_logged_out

        from goals import push_sign_out

        user_logged_out.connect(push_sign_out.signed_out)
        password_changed.connect(push_sign_out.new_password)
        password_reset.connect(push_sign_out.new_password)
