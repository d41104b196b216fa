"""Notices: what a user is told and how, the way to what one is about, and what the page shows of them meanwhile."""

from datetime import timedelta
from functools import partial
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.middleware.csrf import get_token
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import Resolver404, resolve
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from agents.outside import waits_outside
from agents.refusals import Refused
from agents.services import assistant_of
from agents.signed_in import SignedInRequest, signed_in
from goals import looks, mail_proof, notice_mail, push
from goals.forms import NoticeForm
from goals.glances import looked, stands_at
from goals.notice import Channel, Notice, NoticeChoice, Receipt, ReceiptState, choice_of
from goals.notice_words import counted, link, page_of, place_of, title
from goals.noticing import settle
from goals.push_device import PushDevice
from goals.quiet import quiet_until
from tools.models import asked_of

SHOWN = 20
FRESH = timedelta(minutes=5)
"""A notice that is older is no news for a page that stands open."""


@require_http_methods(["GET", "POST"])
@signed_in
def settings_notices(request: SignedInRequest) -> HttpResponse:
    """What is told, where, and what became of the last ones. Nobody need be told of what they see."""
    if request.method == "POST":
        form = NoticeForm(request.POST)
        if form.is_valid():
            NoticeChoice.objects.update_or_create(user=request.user, defaults=form.cleaned_data)
            messages.success(request, _("Saved."))
        return redirect("settings_notices")
    told = Notice.objects.for_user(request.user).filter(receipts__isnull=False).distinct()
    last = told.prefetch_related("receipts").select_related("thread")[:SHOWN]
    page = {
        "choice": choice_of(request.user),
        "assistant": assistant_of(request.user),
        "quiet": quiet_until(request.user.pk, timezone.now()),
        "devices": PushDevice.objects.for_user(request.user),
        "browser": looks.device_of(request),
        "key": push.public_key(),
        "proven": mail_proof.is_proven(request.user),
        "told": [(notice, title(notice), link(notice)) for notice in last],
        "here": "settings",
        "section": "notices",
    }
    return render(request, "settings/notices.html", page)


@require_POST
@signed_in
def push_add(request: SignedInRequest) -> HttpResponse:
    """This browser shows notices from now on."""
    browser = looks.device_of(request)
    answer = redirect("settings_notices")
    try:
        name = _name_of(request.headers.get("User-Agent", ""))
        push.register(request.user, request.POST.get("subscription", ""), name, browser=browser)
    except Refused as refused:
        messages.error(request, refused.message)
        return answer
    looks.remember(answer, browser)
    messages.success(request, _("This browser is told from now on."))
    return answer


@require_http_methods(["GET", "POST"])
@signed_in
def push_renew(request: SignedInRequest) -> HttpResponse:
    """The service worker of a browser that is told says that its subscription is another one now; GET: what it needs
    for that. A browser that is told nothing stays so."""
    device = get_object_or_404(PushDevice.objects.for_user(request.user), browser=looks.device_of(request))
    if request.method == "GET":
        return JsonResponse({"key": push.public_key(), "token": get_token(request)})
    try:
        push.register(request.user, request.POST.get("subscription", ""), device.name, browser=device.browser)
    except Refused as refused:
        return HttpResponse(refused.message, status=422)
    return HttpResponse(status=204)


@require_POST
@signed_in
def push_remove(request: SignedInRequest, device_id: UUID) -> HttpResponse:
    _device(request, device_id).delete()
    messages.success(request, _("It is told nothing any more."))
    return redirect("settings_notices")


@require_POST
@signed_in
@partial(waits_outside, instead="settings_notices")
def push_try(request: SignedInRequest, device_id: UUID) -> HttpResponse:
    """Send something that is about nothing."""
    device = _device(request, device_id)
    words = push.Payload(id="", title="Waymark", body=_("This is how you will be told."), url="/", urgent=True)
    outcome = push.send(device, words)
    if outcome.state == ReceiptState.SENT:
        messages.success(request, _("Sent. It should appear within seconds."))
    elif outcome.state == ReceiptState.GONE:
        push.lose(device)
        messages.error(request, _("It cannot be reached any more. It is told again once Waymark is opened there."))
    else:
        messages.error(request, outcome.detail)
    return redirect("settings_notices")


@require_GET
@signed_in
def notice(request: SignedInRequest, notice_id: UUID) -> HttpResponse:
    """Lead to what a notice is about, which its user sees with that."""
    found = get_object_or_404(Notice.objects.for_user(request.user).select_related("thread"), pk=notice_id)
    Notice.objects.open().filter(pk=found.pk).update(seen_at=timezone.now())
    return redirect(place_of(found))


@csrf_exempt  # a service worker has no token, and all that it can say is this
@require_POST
@signed_in
def notice_shown(request: SignedInRequest, notice_id: UUID) -> HttpResponse:
    """This browser has shown a notice that was pushed to it, and with it all of which that message told."""
    mine = PushDevice.objects.for_user(request.user).filter(browser=looks.device_of(request))
    pushed = Receipt.objects.for_user(request.user).filter(channel=Channel.PUSH, device__in=mine.values("pk"))
    receipt = get_object_or_404(pushed, notice=notice_id)
    pushed.filter(at=receipt.at).update(state=ReceiptState.SHOWN, next_at=None)
    return HttpResponse(status=204)


@require_POST
@signed_in
def looking(request: SignedInRequest) -> HttpResponse:
    """A page says that somebody has it before their eyes, and learns what has come up elsewhere. Once, it says by which
    address its browser is pushed to, and learns whether that is to be told anew: its service worker could not, or a
    backup was restored."""
    try:
        place = looked(request.user, resolve(request.POST.get("path", "")))
    except (Resolver404, ValueError):
        raise Http404 from None
    settle(request.user)
    news = [each for each in _news(request.user) if not stands_at(place, each)]  # some came about just now
    answer = {
        "waiting": asked_of(request.user).count(),
        "notices": [
            {"id": str(each.pk), "text": f"{title(each)}. {each.said}", "url": link(each)} for each in news[:SHOWN]
        ],
        "together": {"text": counted(news), "url": page_of(news)} if news else None,
        "renew": _is_to_renew(request),
    }
    return JsonResponse(answer)


@csrf_exempt  # RFC 8058: a mail program posts it for its user
@require_http_methods(["GET", "POST"])
def mail_off(request: HttpRequest, token: str) -> HttpResponse:
    """No more notices by mail; whoever has the link from a mail need not sign in for that."""
    user = get_object_or_404(User, pk=notice_mail.user_of(token) or 0, is_active=True)
    if request.method == "POST":
        NoticeChoice.objects.update_or_create(user=user, defaults={"mail": False})
    return render(request, "goals/mail_off.html", {"off": request.method == "POST"})


@require_POST
@signed_in
@partial(waits_outside, instead="settings_notices")
def mail_proof_ask(request: SignedInRequest) -> HttpResponse:
    """Mail a link that proves the address."""
    if problem := mail_proof.ask(request.user):
        messages.error(request, problem)
    else:
        messages.success(request, _("Sent. Open the link in the mail within three days."))
    return redirect("settings_notices")


@require_http_methods(["GET", "POST"])
def proof(request: HttpRequest, token: str) -> HttpResponse:
    """Whoever has the link reads the mails of that address; a press, because programs open links, too."""
    user = mail_proof.user_of(token)
    if user is None:
        raise Http404
    if request.method == "POST":
        mail_proof.prove(user)
    return render(request, "goals/mail_proof.html", {"proven": request.method == "POST", "email": user.email})


def _is_to_renew(request: SignedInRequest) -> bool:
    endpoint = request.POST.get("push")
    if endpoint is None:
        return False
    mine = PushDevice.objects.for_user(request.user).filter(browser=looks.device_of(request)).first()
    return mine is not None and not push.is_known(mine, endpoint)


def _news(user: User) -> list[Notice]:
    now = timezone.now()
    if quiet_until(user.pk, now):
        return []
    fresh = Notice.objects.open().filter(user=user, kind__in=choice_of(user).kinds(), created_at__gt=now - FRESH)
    return list(fresh.select_related("thread"))


def _device(request: SignedInRequest, device_id: UUID) -> PushDevice:
    return get_object_or_404(PushDevice.objects.for_user(request.user), pk=device_id)


def _name_of(agent: str) -> str:
    """Such as "Firefox on Android", out of what a browser says of itself."""
    browsers = (("Edg", "Edge"), ("OPR", "Opera"), ("Firefox", "Firefox"), ("Chrome", "Chrome"), ("Safari", "Safari"))
    systems = ("iPhone", "iPad", "Android", "Windows", "Macintosh", "Linux")
    browser = next((name for mark, name in browsers if mark in agent), _("Browser"))
    system = next((name for name in systems if name in agent), "")
    return _("%(browser)s on %(system)s") % {"browser": browser, "system": system} if system else browser
